// The sum of one result of a convolution as text, for kernels with a thread for each.
#pragma once

#include <span>

#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {

/// Entries of each list are those of the spatial axes.
struct ConvWalk {
  std::span<const int64_t> stride, padding, dilation, input_dilation;  // no input dilation: 1
  int64_t groups = 1;
  std::string start, next;  // what `sum` begins as; what it becomes by `a` of x and `b` of w
};
/// Declares `sum` of the result at i0, i1, ..
std::string conv_walk_text(const ConvWalk&, const Arg& x, const Arg& w, const Arg& y);

}  // namespace rlx::cuda
