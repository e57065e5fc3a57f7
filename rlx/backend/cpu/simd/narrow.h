// f16 and bf16 in memory as vectors of f32, rounding half to even.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu {

// For levels without conversion instructions; defined outside the per-level sources.
float f16_to_f32_call(uint16_t);
uint16_t f32_to_f16_call(float);

struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

namespace RLX_ISA {

RLX_INLINE F32 load(const Bf16* p) {
#if defined(RLX_AVX512)
  return (F32)((U32)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)) << 16);
#elif defined(RLX_AVX2)
  return (F32)((U32)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)) << 16);
#else
  const U16Half h = load_bytes<U16Half>(p);
  return (F32)(__builtin_convertvector(h, U32) << 16);
#endif
}
RLX_INLINE F32 load(const F16* p) {
#if defined(RLX_AVX512)
  return (F32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
#elif defined(RLX_AVX2)
  return (F32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
#elif defined(RLX_NEON)
  return (F32)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t*)p)));
#else
  F32 v;
  for (int i = 0; i < kLanes; ++i) v[i] = f16_to_f32_call(p[i].bits);
  return v;
#endif
}

RLX_INLINE void store(Bf16* p, F32 v) {
  const U32 u = (U32)v;
  const U32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const U32 nan = (u >> 16) | 0x40u;
  const U16Half h = __builtin_convertvector((U32)(v == v ? (I32)rounded : (I32)nan), U16Half);
  std::memcpy(p, &h, sizeof h);
}
RLX_INLINE void store(F16* p, F32 v) {
#if defined(RLX_AVX512)
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(RLX_AVX2)
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(RLX_NEON)
  vst1_u16((uint16_t*)p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
#else
  for (int i = 0; i < kLanes; ++i) p[i].bits = f32_to_f16_call(v[i]);
#endif
}

/// The first n lanes through a buffer of one vector.
template <class T>
RLX_INLINE F32 load_narrow_n(const T* p, int n) {
  T buffer[kLanes] = {};
  for (int i = 0; i < n; ++i) buffer[i] = p[i];
  return load(buffer);
}
template <class T>
RLX_INLINE void store_narrow_n(T* p, F32 v, int n) {
  T buffer[kLanes];
  store(buffer, v);
  for (int i = 0; i < n; ++i) p[i] = buffer[i];
}
RLX_INLINE F32 load_n(const F16* p, int n) { return load_narrow_n(p, n); }
RLX_INLINE F32 load_n(const Bf16* p, int n) { return load_narrow_n(p, n); }
RLX_INLINE void store_n(F16* p, F32 v, int n) { store_narrow_n(p, v, n); }
RLX_INLINE void store_n(Bf16* p, F32 v, int n) { store_narrow_n(p, v, n); }

}  // namespace RLX_ISA
}  // namespace rlx::cpu
