// Products of pairs of 16-bit numbers, added up in 32 bits.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// sum + a[2 i] w[2 i] + a[2 i + 1] w[2 i + 1] in every lane i, modulo 2^32; a and w hold two numbers a lane.
RLX_INLINE I32 add_pairs(I32 a, I32 w, I32 sum) {
#if defined(RLX_AVX512)
  return (I32)((U32)sum + (U32)_mm512_madd_epi16((__m512i)a, (__m512i)w));
#elif defined(RLX_AVX2)
  return (I32)((U32)sum + (U32)_mm256_madd_epi16((__m256i)a, (__m256i)w));
#elif defined(__SSE2__)
  return (I32)((U32)sum + (U32)_mm_madd_epi16((__m128i)a, (__m128i)w));
#else
  const int16x8_t x = (int16x8_t)a, y = (int16x8_t)w;
  const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
  return (I32)((U32)sum + (U32)vpaddq_s32(low, high));
#endif
}

/// kLanes numbers of 16 bits, one a lane.
RLX_INLINE I32 load_widened(const int16_t* p) {
#if defined(RLX_AVX512)
  return (I32)_mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(RLX_AVX2)
  return (I32)_mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  I32 v;
  for (int i = 0; i < kLanes; ++i) v[i] = p[i];
  return v;
#endif
}

}  // namespace rlx::cpu::RLX_ISA
