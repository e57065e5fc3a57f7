// Vectors of the widest registers of the instruction set this file is compiled for.
//
// Sources under kernels/isa/ are compiled once per level with RLX_ISA set to the level's name; everything
// here and there lies in namespace rlx::cpu::RLX_ISA, so that no code of one level can be linked into
// another. Types are compiler vectors: + - * / & | ^ and comparisons work on them, and `mask ? a : b`
// selects by lane. What the language does not offer is a function below, with an intrinsic for each level
// and a plain form for the rest (SSE2 and NEON come from 16-byte vectors).
//
// Only force-inlined functions: an out-of-line copy would have a name of its own per level, but calls
// through vectors would be slow.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef RLX_ISA
#error "compiled per instruction set; see cmake/rlx_isa.cmake"
#endif

#define RLX_INLINE inline __attribute__((always_inline))

namespace rlx::cpu::RLX_ISA {

#if defined(__AVX512F__)
#define RLX_AVX512 1
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;
#elif defined(__AVX2__) && defined(__FMA__)
#define RLX_AVX2 1
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;
#elif defined(__aarch64__)
#define RLX_NEON 1
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 32;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 16;
#endif

#if defined(RLX_AVX512) || defined(RLX_AVX2) || defined(RLX_NEON)
inline constexpr bool kHasFma = true;
#else
inline constexpr bool kHasFma = false;
#endif

typedef float F32 __attribute__((vector_size(kVectorBytes)));
typedef double F64 __attribute__((vector_size(kVectorBytes)));
typedef int32_t I32 __attribute__((vector_size(kVectorBytes)));
typedef uint32_t U32 __attribute__((vector_size(kVectorBytes)));
typedef int64_t I64 __attribute__((vector_size(kVectorBytes)));
typedef uint64_t U64 __attribute__((vector_size(kVectorBytes)));
// Half-width companion, for conversions.
typedef uint16_t U16Half __attribute__((vector_size(kVectorBytes / 2)));

inline constexpr int kLanes = kVectorBytes / 4;    // of F32
inline constexpr int kLanes64 = kVectorBytes / 8;  // of F64

// ---- memory ----

template <class V>
RLX_INLINE V load_bytes(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
RLX_INLINE F32 load(const float* p) { return load_bytes<F32>(p); }
RLX_INLINE F64 load(const double* p) { return load_bytes<F64>(p); }
RLX_INLINE I32 load(const int32_t* p) { return load_bytes<I32>(p); }
RLX_INLINE void store(float* p, F32 v) { std::memcpy(p, &v, sizeof v); }
RLX_INLINE void store(double* p, F64 v) { std::memcpy(p, &v, sizeof v); }
RLX_INLINE void store(int32_t* p, I32 v) { std::memcpy(p, &v, sizeof v); }

/// The first n lanes (0 <= n <= lanes); the others are zero and their memory is not touched.
RLX_INLINE F32 load_n(const float* p, int n) {
#if defined(RLX_AVX512)
  return (F32)_mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), p);
#elif defined(RLX_AVX2)
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return (F32)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
#else
  F32 v = {};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
RLX_INLINE void store_n(float* p, F32 v, int n) {
#if defined(RLX_AVX512)
  _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), (__m512)v);
#elif defined(RLX_AVX2)  // a masked store is slow on AMD; by halves instead
  if (n >= 8) return _mm256_storeu_ps(p, (__m256)v);
  __m128 part = _mm256_castps256_ps128((__m256)v);
  if (n & 4) {
    _mm_storeu_ps(p, part);
    part = _mm256_extractf128_ps((__m256)v, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
    part = _mm_movehl_ps(part, part);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, part);
#else
  for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
}
RLX_INLINE F64 load_n(const double* p, int n) {
#if defined(RLX_AVX512)
  return (F64)_mm512_maskz_loadu_pd(__mmask8((1u << n) - 1), p);
#elif defined(RLX_AVX2)
  const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
  return (F64)_mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), lane));
#else
  F64 v = {};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
RLX_INLINE void store_n(double* p, F64 v, int n) {
#if defined(RLX_AVX512)
  _mm512_mask_storeu_pd(p, __mmask8((1u << n) - 1), (__m512d)v);
#else
  for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
}

/// Past the caches; p aligned to the vector.
RLX_INLINE void stream(float* p, F32 v) {
#if defined(RLX_AVX512)
  _mm512_stream_ps(p, (__m512)v);
#elif defined(RLX_AVX2)
  _mm256_stream_ps(p, (__m256)v);
#elif defined(__SSE2__)
  _mm_stream_ps(p, (__m128)v);
#else
  store(p, v);
#endif
}
RLX_INLINE void stream(double* p, F64 v) { stream(reinterpret_cast<float*>(p), (F32)v); }
RLX_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// ---- arithmetic ----

// x - 0 is x for every x, -0 included, so the compiler emits the broadcast alone.
RLX_INLINE F32 set1(float x) { return x - F32{}; }
RLX_INLINE F64 set1(double x) { return x - F64{}; }
RLX_INLINE I32 set1(int32_t x) { return I32{} + x; }

/// a * b + c; rounded once where the machine can.
RLX_INLINE F32 fma(F32 a, F32 b, F32 c) {
#if defined(RLX_AVX512)
  return (F32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(RLX_AVX2)
  return (F32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(RLX_NEON)
  return (F32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
RLX_INLINE F64 fma(F64 a, F64 b, F64 c) {
#if defined(RLX_AVX512)
  return (F64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(RLX_AVX2)
  return (F64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(RLX_NEON)
  return (F64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return a * b + c;
#endif
}

/// c - a * b; rounded once where the machine can.
RLX_INLINE F32 fnma(F32 a, F32 b, F32 c) {
#if defined(RLX_AVX512)
  return (F32)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(RLX_AVX2)
  return (F32)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(RLX_NEON)
  return (F32)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return c - a * b;
#endif
}
RLX_INLINE F64 fnma(F64 a, F64 b, F64 c) {
#if defined(RLX_AVX512)
  return (F64)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(RLX_AVX2)
  return (F64)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(RLX_NEON)
  return (F64)vfmsq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
  return c - a * b;
#endif
}

/// The larger lane. `b` when one of them is NaN on x86: pass the value whose NaN must survive as b.
RLX_INLINE F32 max(F32 a, F32 b) {
#if defined(RLX_AVX512)
  return (F32)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(RLX_AVX2)
  return (F32)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (F32)_mm_max_ps((__m128)a, (__m128)b);
#else
  return a > b ? a : b;
#endif
}
RLX_INLINE F32 min(F32 a, F32 b) {
#if defined(RLX_AVX512)
  return (F32)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(RLX_AVX2)
  return (F32)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  return (F32)_mm_min_ps((__m128)a, (__m128)b);
#else
  return a < b ? a : b;
#endif
}
RLX_INLINE F64 max(F64 a, F64 b) {
#if defined(RLX_AVX512)
  return (F64)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(RLX_AVX2)
  return (F64)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
  return a > b ? a : b;
#endif
}
RLX_INLINE F64 min(F64 a, F64 b) {
#if defined(RLX_AVX512)
  return (F64)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(RLX_AVX2)
  return (F64)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
  return a < b ? a : b;
#endif
}

RLX_INLINE F32 sqrt(F32 x) {
#if defined(RLX_AVX512)
  return (F32)_mm512_sqrt_ps((__m512)x);
#elif defined(RLX_AVX2)
  return (F32)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
  return (F32)_mm_sqrt_ps((__m128)x);
#else
  return (F32)vsqrtq_f32((float32x4_t)x);
#endif
}
RLX_INLINE F64 sqrt(F64 x) {
#if defined(RLX_AVX512)
  return (F64)_mm512_sqrt_pd((__m512d)x);
#elif defined(RLX_AVX2)
  return (F64)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
  return (F64)_mm_sqrt_pd((__m128d)x);
#else
  return (F64)vsqrtq_f64((float64x2_t)x);
#endif
}

RLX_INLINE F32 abs(F32 x) { return (F32)((I32)x & 0x7fffffff); }
RLX_INLINE F64 abs(F64 x) { return (F64)((I64)x & 0x7fffffffffffffff); }
RLX_INLINE F32 copy_sign(F32 magnitude, F32 sign) {
  return (F32)(((I32)magnitude & 0x7fffffff) | ((I32)sign & int32_t(0x80000000)));
}
RLX_INLINE F64 copy_sign(F64 magnitude, F64 sign) {
  return (F64)(((I64)magnitude & 0x7fffffffffffffff) | ((I64)sign & INT64_MIN));
}

/// To the nearest integer, half to even, for |x| < 2^22 (2^51 in f64): adding 1.5 * 2^23 leaves no fraction
/// bits. The integer is also in the low mantissa bits of the sum, see round_to_int.
RLX_INLINE F32 round_small(F32 x) { return (x + 12582912.0f) - 12582912.0f; }
RLX_INLINE F64 round_small(F64 x) { return (x + 6755399441055744.0) - 6755399441055744.0; }
RLX_INLINE I32 round_to_int(F32 x) { return (I32)(x + 12582912.0f) - 0x4b400000; }
RLX_INLINE I64 round_to_int(F64 x) { return (I64)(x + 6755399441055744.0) - 0x4338000000000000; }
/// |n| < 2^51.
RLX_INLINE F64 small_to_double(I64 n) { return (F64)(n + 0x4338000000000000) - 6755399441055744.0; }

RLX_INLINE I32 to_int(F32 x) { return __builtin_convertvector(x, I32); }  // truncates
RLX_INLINE F32 to_float(I32 x) { return __builtin_convertvector(x, F32); }

/// 2^n for -126 <= n <= 127, and for f64 -1022 <= n <= 1023.
RLX_INLINE F32 power_of_two(I32 n) { return (F32)((n + 127) << 23); }
RLX_INLINE F64 power_of_two(I64 n) { return (F64)((n + 1023) << 52); }

/// Bit i is set where lane i of the mask is.
RLX_INLINE uint32_t mask_bits(I32 mask) {
#if defined(RLX_AVX512)
  return _mm512_movepi32_mask((__m512i)mask);
#elif defined(RLX_AVX2)
  return uint32_t(_mm256_movemask_ps((__m256)mask));
#elif defined(__SSE2__)
  return uint32_t(_mm_movemask_ps((__m128)mask));
#else
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= uint32_t(mask[i] & 1) << i;
  return bits;
#endif
}
RLX_INLINE uint32_t mask_bits(I64 mask) {
#if defined(RLX_AVX512)
  return _mm512_movepi64_mask((__m512i)mask);
#elif defined(RLX_AVX2)
  return uint32_t(_mm256_movemask_pd((__m256d)mask));
#elif defined(__SSE2__)
  return uint32_t(_mm_movemask_pd((__m128d)mask));
#else
  uint32_t bits = 0;
  for (int i = 0; i < kLanes64; ++i) bits |= uint32_t(mask[i] & 1) << i;
  return bits;
#endif
}

// ---- between f32 and f64: the low and high half of the lanes ----

struct F64Pair {
  F64 low, high;
};
RLX_INLINE F64Pair to_double(F32 x) {
#if defined(RLX_AVX512)
  const __m512 v = (__m512)x;
  return {(F64)_mm512_cvtps_pd(_mm512_castps512_ps256(v)),
          (F64)_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))};
#elif defined(RLX_AVX2)
  const __m256 v = (__m256)x;
  return {(F64)_mm256_cvtps_pd(_mm256_castps256_ps128(v)), (F64)_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))};
#elif defined(__SSE2__)
  return {(F64)_mm_cvtps_pd((__m128)x), (F64)_mm_cvtps_pd(_mm_movehl_ps((__m128)x, (__m128)x))};
#else
  return {(F64)vcvt_f64_f32(vget_low_f32((float32x4_t)x)), (F64)vcvt_high_f64_f32((float32x4_t)x)};
#endif
}
RLX_INLINE F64Pair to_double(I32 x) {
#if defined(RLX_AVX512)
  const __m512i v = (__m512i)x;
  return {(F64)_mm512_cvtepi32_pd(_mm512_castsi512_si256(v)),
          (F64)_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v, 1))};
#elif defined(RLX_AVX2)
  const __m256i v = (__m256i)x;
  return {(F64)_mm256_cvtepi32_pd(_mm256_castsi256_si128(v)),
          (F64)_mm256_cvtepi32_pd(_mm256_extracti128_si256(v, 1))};
#elif defined(__SSE2__)
  return {(F64)_mm_cvtepi32_pd((__m128i)x), (F64)_mm_cvtepi32_pd(_mm_unpackhi_epi64((__m128i)x, (__m128i)x))};
#else
  return {(F64)vcvtq_f64_s64(vmovl_s32(vget_low_s32((int32x4_t)x))),
          (F64)vcvtq_f64_s64(vmovl_high_s32((int32x4_t)x))};
#endif
}
/// To the nearest integer, half to even; |x| < 2^31.
RLX_INLINE I32 round_to_int(F64Pair x) {
#if defined(RLX_AVX512)
  return (I32)_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtpd_epi32((__m512d)x.low)),
                                 _mm512_cvtpd_epi32((__m512d)x.high), 1);
#elif defined(RLX_AVX2)
  return (I32)_mm256_inserti128_si256(_mm256_castsi128_si256(_mm256_cvtpd_epi32((__m256d)x.low)),
                                      _mm256_cvtpd_epi32((__m256d)x.high), 1);
#elif defined(__SSE2__)
  return (I32)_mm_unpacklo_epi64(_mm_cvtpd_epi32((__m128d)x.low), _mm_cvtpd_epi32((__m128d)x.high));
#else
  return (I32)vmovn_high_s64(vmovn_s64(vcvtnq_s64_f64((float64x2_t)x.low)),
                             vcvtnq_s64_f64((float64x2_t)x.high));
#endif
}
RLX_INLINE F32 to_float(F64Pair x) {
#if defined(RLX_AVX512)
  return (F32)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)x.low)),
                                 _mm512_cvtpd_ps((__m512d)x.high), 1);
#elif defined(RLX_AVX2)
  return (F32)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)x.low)),
                                   _mm256_cvtpd_ps((__m256d)x.high), 1);
#elif defined(__SSE2__)
  return (F32)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)x.low), _mm_cvtpd_ps((__m128d)x.high));
#else
  return (F32)vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t)x.low), (float64x2_t)x.high);
#endif
}

// ---- across lanes: halves are folded, so the order of additions is fixed per level ----

RLX_INLINE float reduce_add(F32 v) {
#if defined(RLX_AVX512)
  return _mm512_reduce_add_ps((__m512)v);
#else
  float s[kLanes];
  store(s, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  }
  return s[0];
#endif
}
RLX_INLINE double reduce_add(F64 v) {
  double s[kLanes64];
  store(s, v);
  for (int half = kLanes64 / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  }
  return s[0];
}
RLX_INLINE float reduce_max(F32 v) {
#if defined(RLX_AVX512)
  return _mm512_reduce_max_ps((__m512)v);
#else
  float s[kLanes];
  store(s, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] = s[i] > s[i + half] ? s[i] : s[i + half];
  }
  return s[0];
#endif
}

}  // namespace rlx::cpu::RLX_ISA
