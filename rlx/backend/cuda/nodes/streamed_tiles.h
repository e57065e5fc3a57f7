// Products of some rows on matrix units, as fast as their weights can be read.
#pragma once

#include <optional>

#include "rlx/backend/cuda/nodes/few_rows.h"

namespace rlx::cuda {

class StreamedTiles {
 public:
  /// Nothing where another kernel is to be taken: fewer or more rows, other types, columns that are no runs.
  static std::optional<StreamedTiles> make(const Device&, const FewRows&);

  bool fits(const void* a, const void* b) const {
    return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
  }
  void run(const Stream&, const void* a, const void* b, void* c) const;

 private:
  FewRows p_;
  ColumnProducts kernel_;
};

}  // namespace rlx::cuda
