// Plan: where windows share elements they are combined axis by axis: the rows a window covers are folded into
// one row (whole vectors, one load of memory each), then the windows along that row are folded for a vector
// of outputs at a time, so an output costs kernel[0] kernel[1] stride + kernel[2] combinations instead of the
// product of the three. Where they share none, all elements of a vector of windows are folded at once.
// The gradient of an extreme finds the place of the extreme in a vector of windows at a time and adds to the
// places one by one. Bound: reading x, kernel / stride times from the near caches.
#include "rlx/backend/cpu/kernels/pool.h"

#include <algorithm>

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

// body(first, take) for vectors of windows: take(p) is one element of each, p in the first of them. The last
// vector begins where it ends with the last window; there step 2 reads from one element before, not to one
// behind. w comes by value: behind a reference, the stores could change it.
template <int kStep, class Body>
RLX_INLINE void each_vector_at(PoolWindows w, float* to, Body body) {
  const int64_t step = kStep > 0 ? kStep : w.stride;
  int64_t j = 0;
  for (; j + kLanes < w.n; j += kLanes)
    store(to + j, body(w, w.from + j * step, [=](const float* p) { return load_strided(p, step); }));
  if (j == w.n) return;
  j = std::max<int64_t>(0, w.n - kLanes);
  const float* first = w.from + j * step;
  if (w.n >= kLanes && kStep > 0 && (w.kernel > 1 || first > w.from)) {
    store(to + j, body(w, first, [=](const float* p) {
            return kStep == 2 && p > w.from ? every_second(load(p - 1), load(p - 1 + kLanes), true)
                                            : load_strided(p, step);
          }));
  } else {
    const int l = int(w.n - j);
    const F32 v = body(w, first, [=](const float* p) { return load_strided_n(p, step, l); });
    l == kLanes ? store(to + j, v) : store_n(to + j, v, l);
  }
}
template <class Body>
RLX_INLINE void each_vector(const PoolWindows& w, float* to, Body body) {
  if (w.stride == 1) return each_vector_at<1>(w, to, body);
  if (w.stride == 2) return each_vector_at<2>(w, to, body);
  each_vector_at<0>(w, to, body);
}

template <class Op>
void fold_windows(Op op, const PoolWindows& windows, float* to) {
  each_vector(windows, to, [=](const PoolWindows& w, const float* at, auto take) {
    F32 v = take(at + w.rows[0]);
    for (int64_t k = 1; k < w.kernel; ++k) v = op(v, take(at + w.rows[0] + k));
    for (int64_t r = 1; r < w.row_count; ++r) {
      for (int64_t k = 0; k < w.kernel; ++k) v = op(v, take(at + w.rows[r] + k));
    }
    return v;
  });
}

template <bool kLargest>
void find(const PoolWindows& windows, float* to) {
  each_vector(windows, to, [](const PoolWindows& w, const float* at, auto take) {
    F32 best = take(at + w.rows[0]), place = F32{};
    I32 numbers = best == best;
    for (int64_t r = 0; r < w.row_count; ++r) {
      for (int64_t k = 0; k < w.kernel; ++k) {
        const F32 v = take(at + w.rows[r] + k);
        const I32 better = kLargest ? v > best : v < best;
        best = better ? v : best;
        place = better ? set1(float(r * w.kernel + k)) : place;
        numbers &= v == v;
      }
    }
    return numbers ? place : set1(-1.0f);
  });
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
void combine_windows(Reduction kind, const PoolWindows& w, float* to) {
  with_operation(kind, [&](auto op) { fold_windows(op, w, to); });
}
void find_extremes(Reduction kind, const PoolWindows& w, float* to) {
  kind == Reduction::max ? find<true>(w, to) : find<false>(w, to);
}

}  // namespace

PoolKernels pool_kernels() { return {combine, combine_windows, find_extremes}; }

}  // namespace rlx::cpu::RLX_ISA
