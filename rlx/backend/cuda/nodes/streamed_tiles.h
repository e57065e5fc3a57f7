// Products of some rows on matrix units, as fast as their weights can be read.
#pragma once

#include <optional>

#include "rlx/backend/cuda/nodes/few_rows.h"

namespace rlx::cuda {

class StreamedTiles {
 public:
  /// Nothing where another kernel is to be taken: fewer or more rows, other types, columns that are no runs.
  static std::optional<StreamedTiles> make(const Device&, const FewRows&);
  /// The same with `hooks`, the text of Params and finish (kernels/streamed_tiles.h); `aligned`: only for addresses that fit.
  static std::optional<StreamedTiles> make(const Device&, const FewRows&, const std::string& hooks,
                                           bool aligned);

  static constexpr int64_t kLeastRows = 5, kMostRows = 32;
  /// Whether `make` gives one, on a device with so much shared memory for a block.
  static constexpr int64_t kLeastShared = 160 << 10;
  static bool suits(const FewRows&);

  static bool fits(const void* a, const void* b) {
    return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
  }
  void run(const Stream&, const void* a, const void* b, void* c) const;
  /// `params`: the bytes of Params.
  void run_with(const Stream&, void* params, const void* a, const void* b) const;

 private:
  FewRows p_;
  ColumnProducts kernel_;
};

}  // namespace rlx::cuda
