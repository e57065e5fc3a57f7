// Pooling over windows of the last one to three axes of [planes, size..], f32, and its gradient.
//   y[o] = kind of x[o stride + k - padding] over 0 <= k < kernel on each axis; padding takes no part:
// a sum adds 0, a product multiplies by 1, a mean divides by the number of elements inside x, or by the whole
// window with count_padding. A NaN inside a window makes its result NaN. Every window must meet x: padding is
// smaller than the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/kernels/conv/conv.h"
#include "rlx/backend/cpu/kernels/reduce.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

struct Pooling {
  Reduction kind = Reduction::max;  // sum, mean, max, min, prod
  int64_t planes = 1;
  // Fewer axes than three: leave the first ones as they are.
  Extents size{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0};
  bool count_padding = false;
  const float* x = nullptr;
  float* y = nullptr;

  /// floor((size + 2 padding - kernel) / stride) + 1
  Extents out() const;
};
size_t pooling_workspace(const Pooling&, int threads);
void pooling(Team, const Pooling&, std::byte* workspace);

/// dx[i] = sum over the windows o that hold i of dy[o] times the derivative of y[o] in x[i]. Of several equal
/// extrema of a window the first in row-major order gets all of dy[o]; a window whose result is NaN gives
/// nothing. The gradient of a product multiplies the other elements, so it is exact with zeros. y is not
/// read.
struct PoolingBackward {
  Pooling forward;  // with x
  const float* dy = nullptr;
  float* dx = nullptr;
};
void pooling_backward(Team, const PoolingBackward&);

/// Windows along a row: window j < n holds from[rows[r] + j stride + k] for r < row_count, k < kernel.
struct PoolWindows {
  const float* from;
  const int64_t* rows;
  int64_t row_count, kernel, stride, n;
};
/// Windows of three elements, two apart: window j holds from[rows[r] + 2 j - padding + k] for r < row_count, k < 3, of which
/// those outside [0, size) count as `neutral`. padding is 0 or 1.
struct PoolThrees {
  const float* from;
  const int64_t* rows;
  int64_t row_count, size, padding, n;
  float neutral;
};
struct PoolKernels {
  /// to[i] = combine(to[i], from[i]) for i < n.
  void (*combine)(Reduction, const float* from, float* to, int64_t n);
  /// to[j] = combine over window j.
  void (*combine_windows)(Reduction, const PoolWindows&, float* to);
  void (*combine_threes)(Reduction, const PoolThrees&, float* to);
  /// to[j] = r kernel + k of the first extreme element of window j, -1 where one of them is NaN.
  void (*find_extremes)(Reduction, const PoolWindows&, float* to);
};

}  // namespace rlx::cpu
