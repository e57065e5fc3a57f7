// Transposition of a square of vectors in registers.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// a[0] b[0] a[1] b[1] ... of the lower or upper halves.
RLX_INLINE F32 interleave(F32 a, F32 b, bool upper) {
  I32 low, high;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = i / 2 + i % 2 * kLanes;
    high[i] = low[i] + kLanes / 2;
  }
  return upper ? __builtin_shuffle(a, b, high) : __builtin_shuffle(a, b, low);
}

/// v[i][j] <-> v[j][i]: a perfect shuffle of the rows, repeated log2(kLanes) times.
RLX_INLINE void transpose(F32 (&v)[kLanes]) {
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    F32 t[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      t[2 * i] = interleave(v[i], v[i + kLanes / 2], false);
      t[2 * i + 1] = interleave(v[i], v[i + kLanes / 2], true);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) v[i] = t[i];
  }
}

}  // namespace rlx::cpu::RLX_ISA
