// Sorting of the few axes of a tensor.
#pragma once

#include <utility>

namespace rlx::cpu {

/// A stable order by insertion. The sort of the standard library takes memory for it, and kernels allocate nothing.
template <class Axis, class Before>
void order_axes(Axis* axes, int count, Before before) {
  for (int i = 1; i < count; ++i) {
    for (int k = i; k > 0 && before(axes[k], axes[k - 1]); --k) std::swap(axes[k], axes[k - 1]);
  }
}

}  // namespace rlx::cpu
