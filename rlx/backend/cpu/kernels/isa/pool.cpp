// Plan: where windows share elements they are combined axis by axis: the rows a window covers are folded into
// one row (whole vectors, one load of memory each), then the windows along that row are folded for a vector
// of outputs at a time, so an output costs kernel[0] kernel[1] stride + kernel[2] combinations instead of the
// product of the three. Of windows of three, two apart, both happens in registers: the even and odd elements of two
// vectors of the folded row, and the odd ones a lane further. Where they share none, all elements of a vector of windows are folded at once.
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

// Lane i: lane i - 1 of v, and the last one of `before` first.
RLX_INLINE F32 a_lane_further(F32 before, F32 v) {
  I32 from;
  for (int i = 0; i < kLanes; ++i) from[i] = kLanes - 1 + i;
  return shuffle(before, v, from);
}

/// Behind an element `before`, window j holds 2 j - 1, 2 j and 2 j + 1. kRows: how many rows, 0 where that is in w.
template <int kRows, class Op>
void fold_threes(Op op, PoolThrees w, float* to) {
  const int64_t shift = 1 - w.padding, size = w.size - shift;
  const auto folded = [&](int64_t i, auto get) {
    F32 v = get(w.from + w.rows[0] + shift + i);
#pragma GCC unroll 3
    for (int64_t r = 1; r < (kRows > 0 ? kRows : w.row_count); ++r)
      v = op(v, get(w.from + w.rows[r] + shift + i));
    return v;
  };
  const F32 neutral = set1(w.neutral);
  const auto part = [&](int64_t i) {
    const int64_t there = size - i;
    if (there >= kLanes) return folded(i, [](const float* p) { return load(p); });
    if (there <= 0) return neutral;
    I32 lane;
    for (int l = 0; l < kLanes; ++l) lane[l] = l;
    const F32 v = folded(i, [&](const float* p) { return load_n(p, int(there)); });
    return lane < int32_t(there) ? v : neutral;
  };
  F32 before = neutral;
  if (shift == 1) {
    before = set1(w.from[w.rows[0]]);
    for (int64_t r = 1; r < w.row_count; ++r) before = op(before, set1(w.from[w.rows[r]]));
  }
  for (int64_t j = 0; j < w.n; j += kLanes) {
    const F32 a = part(2 * j), b = part(2 * j + kLanes);
    const F32 even = every_second(a, b, false), odd = every_second(a, b, true);
    const F32 v = op(op(a_lane_further(before, odd), even), odd);
    before = odd;
    w.n - j >= kLanes ? store(to + j, v) : store_n(to + j, v, int(w.n - j));
  }
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
void combine_threes(Reduction kind, const PoolThrees& w, float* to) {
  with_operation(kind,
                 [&](auto op) { w.row_count == 3 ? fold_threes<3>(op, w, to) : fold_threes<0>(op, w, to); });
}
void find_extremes(Reduction kind, const PoolWindows& w, float* to) {
  kind == Reduction::max ? find<true>(w, to) : find<false>(w, to);
}

}  // namespace

PoolKernels pool_kernels() { return {combine, combine_windows, combine_threes, find_extremes}; }

}  // namespace rlx::cpu::RLX_ISA
