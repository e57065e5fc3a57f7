// Vectors from elements that lie `step` apart.
#pragma once

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {

/// p[0], p[step], ..; step 2 reads one element beyond the last.
RLX_INLINE F32 load_strided(const float* p, int64_t step) {
  if (step == 1) return load(p);
  if (step == 2) return every_second(load(p), load(p + kLanes), false);
  F32 v;
  for (int i = 0; i < kLanes; ++i) v[i] = p[i * step];
  return v;
}
/// The first n of them; the other lanes are zero.
RLX_INLINE F32 load_strided_n(const float* p, int64_t step, int n) {
  F32 v = {};
  for (int i = 0; i < n; ++i) v[i] = p[i * step];
  return v;
}

}  // namespace rlx::cpu::RLX_ISA
