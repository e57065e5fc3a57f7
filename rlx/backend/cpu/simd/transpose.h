// Transposition of a square of vectors in registers, and the pairs of interleaved complex numbers.
#pragma once

#include "rlx/backend/cpu/simd/shuffle.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// Lanes of a vector type, and integers of its lanes' size to index them.
template <class V>
struct LanesOf;
template <>
struct LanesOf<F32> {
  static constexpr int count = kLanes;
  using Index = I32;
};
template <>
struct LanesOf<F64> {
  static constexpr int count = kLanes64;
  using Index = I64;
};
// Small elements in 16 bytes, whose shuffles every level has.
typedef uint16_t U16x8 __attribute__((vector_size(16)));
typedef uint8_t U8x16 __attribute__((vector_size(16)));
template <>
struct LanesOf<U16x8> {
  static constexpr int count = 8;
  using Index = U16x8;
};
template <>
struct LanesOf<U8x16> {
  static constexpr int count = 16;
  using Index = U8x16;
};

/// a[0] b[0] a[1] b[1] ... of the lower or upper halves.
template <class V>
RLX_INLINE V interleave(V a, V b, bool upper) {
  constexpr int n = LanesOf<V>::count;
  typename LanesOf<V>::Index low, high;
  for (int i = 0; i < n; ++i) {
    low[i] = i / 2 + i % 2 * n;
    high[i] = i / 2 + i % 2 * n + n / 2;
  }
  return upper ? shuffle(a, b, high) : shuffle(a, b, low);
}

/// The even or the odd elements of a followed by those of b: takes apart what interleave put together.
template <class V>
RLX_INLINE V every_second(V a, V b, bool odd) {
  constexpr int n = LanesOf<V>::count;
  typename LanesOf<V>::Index evens, odds;
  for (int i = 0; i < n; ++i) {
    evens[i] = 2 * i;
    odds[i] = 2 * i + 1;
  }
  return odd ? shuffle(a, b, odds) : shuffle(a, b, evens);
}

/// v[i][j] <-> v[j][i]: a perfect shuffle of the rows, repeated log2(lanes) times.
template <class V>
RLX_INLINE void transpose(V (&v)[LanesOf<V>::count]) {
  constexpr int n = LanesOf<V>::count;
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
    V t[n];
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      t[2 * i] = interleave(v[i], v[i + n / 2], false);
      t[2 * i + 1] = interleave(v[i], v[i + n / 2], true);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) v[i] = t[i];
  }
}

/// The halves of a added to each other in the even lanes, those of b in the odd ones. Folding v[i] with
/// v[i + half] for half = kLanes / 2, ..., 1 leaves the sum of all lanes of v[i] in lane i of v[0].
RLX_INLINE F32 fold(F32 a, F32 b) { return interleave(a, b, false) + interleave(a, b, true); }

/// Lane i: the sum of the lanes of v[i], in a fixed order.
RLX_INLINE F32 sum_lanes(F32 (&v)[kLanes]) {
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) v[i] = fold(v[i], v[i + half]);
  }
  return v[0];
}

}  // namespace rlx::cpu::RLX_ISA
