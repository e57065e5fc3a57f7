// Sums of lanes by quads: four neighbouring lanes, which every level can shuffle cheaply.
#pragma once

#include "rlx/backend/cpu/simd/shuffle.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

inline constexpr int kQuads = kLanes / 4;

/// Quad r of the result: the sums of the quads r of a, b, c and d.
template <class V>
RLX_INLINE V sum_quads(V a, V b, V c, V d) {
  I32 low, high, first, second;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = i / 4 * 4 + i % 4 / 2 + i % 2 * kLanes;
    high[i] = low[i] + 2;
    first[i] = i / 4 * 4 + i % 2 + i % 4 / 2 * kLanes;
    second[i] = first[i] + 2;
  }
  const V x = shuffle(a, b, low) + shuffle(a, b, high), y = shuffle(c, d, low) + shuffle(c, d, high);
  return shuffle(x, y, first) + shuffle(x, y, second);
}

/// Quad i of the result: the sum of all quads of t[i].
RLX_INLINE F32 sum_across(const F32 (&t)[kQuads]) {
#if defined(RLX_AVX512)
  const __m512 a = (__m512)t[0], b = (__m512)t[1], c = (__m512)t[2], d = (__m512)t[3];
  const __m512 x = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee)),
               y = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
  return (F32)_mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
#elif defined(RLX_AVX2)
  const __m256 a = (__m256)t[0], b = (__m256)t[1];
  return (F32)_mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
#else
  return t[0];
#endif
}

/// Quad r of v.
RLX_INLINE void store_quad(float* p, F32 v, int r) {
#if defined(RLX_AVX512)
  const __m512i all = (__m512i)v;
  const __m128i quad = r == 0   ? _mm512_castsi512_si128(all)
                       : r == 1 ? _mm512_extracti32x4_epi32(all, 1)
                       : r == 2 ? _mm512_extracti32x4_epi32(all, 2)
                                : _mm512_extracti32x4_epi32(all, 3);
  std::memcpy(p, &quad, sizeof quad);
#elif defined(RLX_AVX2)
  const __m256 all = (__m256)v;
  const __m128 quad = r == 0 ? _mm256_castps256_ps128(all) : _mm256_extractf128_ps(all, 1);
  std::memcpy(p, &quad, sizeof quad);
#else
  (void)r;  // there is one
  store(p, v);
#endif
}

}  // namespace rlx::cpu::RLX_ISA
