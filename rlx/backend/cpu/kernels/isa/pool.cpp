// Plan: a window is combined axis by axis: the rows it covers are folded into one row (whole vectors, one
// load of memory each), then the windows along that row are folded for a vector of outputs at a time. So an
// output costs kernel[0] kernel[1] stride + kernel[2] combinations instead of the product of the three.
// Bound: reading x, kernel / stride times from the near caches.
#include "rlx/backend/cpu/kernels/pool.h"
#include "rlx/backend/cpu/simd/strided.h"

namespace rlx::cpu::RLX_ISA {
namespace {

struct Add {
  RLX_INLINE F32 operator()(F32 a, F32 b) const { return a + b; }
};
struct Mul {
  RLX_INLINE F32 operator()(F32 a, F32 b) const { return a * b; }
};
// A NaN on either side wins: max and min return their second operand when either is one.
struct Max {
  RLX_INLINE F32 operator()(F32 a, F32 b) const { return a == a ? max(a, b) : a; }
};
struct Min {
  RLX_INLINE F32 operator()(F32 a, F32 b) const { return a == a ? min(a, b) : a; }
};

template <class Op>
void fold_rows(Op op, const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, op(load(to + i), load(from + i)));
  if (i < n) {
    const int l = int(n - i);
    store_n(to + i, op(load_n(to + i, l), load_n(from + i, l)), l);
  }
}

template <class Op>
void fold_windows(Op op, const float* from, int64_t kernel, int64_t stride, float* to, int64_t n) {
  int64_t j = 0;
  for (; j + kLanes < n; j += kLanes) {  // step 2 reads one element more
    const float* at = from + j * stride;
    F32 v = load_strided(at, stride);
    for (int64_t k = 1; k < kernel; ++k) v = op(v, load_strided(at + k, stride));
    store(to + j, v);
  }
  if (j < n) {
    const int l = int(n - j);
    const float* at = from + j * stride;
    F32 v = load_strided_n(at, stride, l);
    for (int64_t k = 1; k < kernel; ++k) v = op(v, load_strided_n(at + k, stride, l));
    l == kLanes ? store(to + j, v) : store_n(to + j, v, l);
  }
}

template <class Body>
RLX_INLINE void with_operation(Reduction kind, Body body) {
  switch (kind) {
    case Reduction::max:
      return body(Max{});
    case Reduction::min:
      return body(Min{});
    case Reduction::prod:
      return body(Mul{});
    default:
      return body(Add{});
  }
}

void combine(Reduction kind, const float* from, float* to, int64_t n) {
  with_operation(kind, [=](auto op) { fold_rows(op, from, to, n); });
}
void combine_windows(Reduction kind, const float* from, int64_t kernel, int64_t stride, float* to,
                     int64_t n) {
  with_operation(kind, [=](auto op) { fold_windows(op, from, kernel, stride, to, n); });
}

}  // namespace

PoolKernels pool_kernels() { return {combine, combine_windows}; }

}  // namespace rlx::cpu::RLX_ISA
