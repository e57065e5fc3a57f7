// All sliding windows of the last one to three axes, laid out as axes of their own, and the sum that takes
// them back:
//   windows      to[p, o.., k..] = from[p, o stride + k - padding], 0 outside
//   windows_sum  to[p, i..] = sum of from[p, o.., k..] over o stride + k - padding = i
// A plane is done by one thread, so sums do not depend on their number.
#pragma once

#include "rlx/backend/cpu/kernels/conv/conv.h"
#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

struct Windows {
  DType dtype = DType::f32;  // any; sums: f32, f64, i32, i64
  int64_t planes = 1;
  // Fewer axes than three: leave the first ones as they are.
  Extents size{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0};
  const void* from = nullptr;
  void* to = nullptr;
};
void windows(Team, const Windows&);
void windows_sum(Team, const Windows&);

}  // namespace rlx::cpu
