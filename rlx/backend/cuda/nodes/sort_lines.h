// Lines in order, for steps that sort.
#pragma once

#include "rlx/backend/cuda/nodes/families.h"

namespace rlx::cuda {

/// Stable sorts of `lines` lines of `length` elements, which are `inner` apart, as axis_view says. Values and where they were.
class LineSorter {
 public:
  LineSorter(const Device&, DType, bool descending, int64_t lines, int64_t length, int64_t inner);
  void run(const Stream&, const std::byte* x, std::byte* values, std::byte* places,
           std::byte* workspace) const;

  size_t workspace() const { return workspace_; }
  std::string note() const;

 private:
  std::byte* place_of(int pass, std::byte* result, std::byte* workspace, size_t offset) const;

  int64_t lines_, length_, inner_, tile_ = 2, tiles_ = 1;
  int threads_ = 0, passes_ = 0;
  size_t values_bytes_ = 0, place_bytes_ = 0, workspace_ = 0;
  FunctionRef sort_, merge_, last_;
};

}  // namespace rlx::cuda
