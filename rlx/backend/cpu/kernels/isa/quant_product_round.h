// Rows of x as records: codes of 8 bits, scales and sums of codes, strip by strip.
#pragma once

#include "rlx/backend/cpu/kernels/isa/quant_product_dot.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

constexpr int kStripVectors = 32 / kLanes;

/// The codes of a strip as bytes, and their sums over both halves.
RLX_INLINE void store_codes(const I32 (&codes)[kStripVectors], int8_t* q, int32_t (&sums)[2]) {
#if defined(RLX_AVX2)
  const auto c = [&](int i) { return (__m256i)codes[i]; };
  // Packing works within halves of vectors: words 0 2 4 6 | 1 3 5 7.
  const __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(c(0), c(1)), _mm256_packs_epi32(c(2), c(3)));
  const __m256i all = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), all);
  __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), all), _mm256_set1_epi16(1));
  sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4e));
  sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xb1));
  sums[0] = _mm256_extract_epi32(sum, 0);
  sums[1] = _mm256_extract_epi32(sum, 4);
#else
  for (int i = 0; i < kStripVectors; ++i) {
#if defined(RLX_AVX512)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i * kLanes), _mm512_cvtepi32_epi8((__m512i)codes[i]));
#else
    for (int l = 0; l < kLanes; ++l) q[i * kLanes + l] = int8_t(codes[i][l]);
#endif
  }
  sums[0] = sums[1] = 0;
  for (int i = 0; i < 16; ++i) sums[0] += q[i], sums[1] += q[16 + i];
#endif
}

RLX_INLINE int32_t largest_lane(I32 v) {
#if defined(RLX_AVX2)
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
#else
  int32_t largest = v[0];
  for (int l = 1; l < kLanes; ++l) largest = v[l] > largest ? v[l] : largest;
  return largest;
#endif
}

/// The nearest number of f16, halves to even; itself outside the normal numbers of f16.
RLX_INLINE float nearest_half(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x38800000u || magnitude > 0x477fe000u) return v;  // 2^-14, 65504
  return as_float(int32_t((bits + 0xfffu + ((bits >> 13) & 1)) & ~0x1fffu));
}

/// Codes are x times `inverse`, rounded, and stand for code times `scale`.
struct Rounding {
  float inverse, scale, stored;  // stored: the scale as products use it
};

RLX_INLINE Rounding rounding_of(const float* x, int64_t count, const QuantLayout& layout) {
  // As integers, magnitudes are ordered like their values, with infinities and NaN above all of them.
  I32 top = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    const I32 bits = (I32)abs(load(x + i));
    top = bits > top ? bits : top;
  }
  const int32_t largest_bits = largest_lane(top);
  // A non-finite number times 0 is NaN; its code does not matter.
  if (largest_bits >= 0x7f800000) return {0, as_float(0x7fc00000), as_float(0x7fc00000)};
  const float largest = as_float(largest_bits);
  if (largest < 0x1p-120f) return {0, 0, 0};
  const float inverse = 127.0f / largest;
  if (layout.elements == 256) return {inverse, 1.0f / inverse, 1.0f / inverse};
  return {inverse, largest / 127.0f, nearest_half(largest / 127.0f)};
}

/// `sums`: of the codes of both halves.
RLX_INLINE void put_corrections(float scale, int32_t (&sums)[2], const QuantLayout& layout, Record& out) {
  if (layout.run == 32) sums[0] += sums[1];
  for (int s = 0; s < 2; ++s) {
    out.correction[s] = -layout.offset * sums[s];
    if (layout.has_least()) {
      const float total = scale * float(sums[s]);
      const float kept = layout.scale == ScaleForm::half_least ? nearest_half(total) : total;
      std::memcpy(&out.correction[s], &kept, 4);
    }
  }
}

/// `x`: 32 numbers.
RLX_INLINE void round_strip(const float* x, const Rounding& r, const QuantLayout& layout, Record& out) {
  out.scale = r.stored;
  const F32 inverse = set1(r.inverse);
  I32 codes[kStripVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kStripVectors; ++i) codes[i] = round_to_int(load(x + i * kLanes) * inverse);
  alignas(32) int8_t q[32];
  int32_t sums[2];
  store_codes(codes, q, sums);
  put_corrections(r.scale, sums, layout, out);
  for (int i = 0; i < 8; ++i) out.words[i] = make_word(q + 4 * i);
}

#if defined(RLX_AVX2)

/// The largest magnitude of each of eight strips, as bits.
RLX_INLINE __m256i largest_of_eight(const float* x) {
  const auto larger = [](__m256i a, __m256i b) { return _mm256_max_epi32(a, b); };
  const __m256i sign = _mm256_set1_epi32(0x7fffffff);
  __m256i v[8], w[4], u[2];
#pragma GCC unroll 8
  for (int t = 0; t < 8; ++t) {
    const auto bits = [&](int i) {
      return _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 32 * t + 8 * i)), sign);
    };
    v[t] = larger(larger(bits(0), bits(1)), larger(bits(2), bits(3)));
  }
  // Halves of the lanes at a time: strips 2i, 2i + 1 in w[i], four of them in u[i].
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    w[i] =
        larger(_mm256_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm256_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    u[i] =
        larger(_mm256_unpacklo_epi64(w[2 * i], w[2 * i + 1]), _mm256_unpackhi_epi64(w[2 * i], w[2 * i + 1]));
  return larger(_mm256_permute2x128_si256(u[0], u[1], 0x20), _mm256_permute2x128_si256(u[0], u[1], 0x31));
}

/// Eight strips with a rounding each, `height` records apart.
RLX_INLINE void round_eight(const float* x, const float (&inverse)[8], const float (&scale)[8],
                            const float (&stored)[8], const QuantLayout& layout, Record* out,
                            int64_t height) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i parts[8];
#pragma GCC unroll 8
  for (int t = 0; t < 8; ++t) {
    const __m256 f = _mm256_set1_ps(inverse[t]);
    const auto code = [&](int i) {
      return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 32 * t + 8 * i), f));
    };
    const __m256i mixed =
        _mm256_packs_epi16(_mm256_packs_epi32(code(0), code(1)), _mm256_packs_epi32(code(2), code(3)));
    const __m256i all = _mm256_permutevar8x32_epi32(mixed, order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[t * height].words), all);
    out[t * height].scale = stored[t];
    parts[t] = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), all), _mm256_set1_epi16(1));
  }
  // Sums of the first halves of strips in the lower halves of vectors, of the second in the upper.
  const auto four = [&](int t) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(parts[t], parts[t + 1]),
                             _mm256_hadd_epi32(parts[t + 2], parts[t + 3]));
  };
  const __m256i low = four(0), high = four(4);
  alignas(32) int32_t sums[2][8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums[0]), _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums[1]), _mm256_permute2x128_si256(low, high, 0x31));
  for (int t = 0; t < 8; ++t) {
    int32_t own[2] = {sums[0][t], sums[1][t]};
    put_corrections(scale[t], own, layout, out[t * height]);
  }
}

/// Eight strips behind each other, each under a scale of its own: rounding_of for all of them.
RLX_INLINE void round_eight_strips(const float* x, const QuantLayout& layout, Record* out, int64_t height) {
  const __m256i top = largest_of_eight(x);
  const __m256 largest = _mm256_castsi256_ps(top), k127 = _mm256_set1_ps(127.0f);
  const __m256 special = _mm256_castsi256_ps(_mm256_cmpgt_epi32(top, _mm256_set1_epi32(0x7f7fffff)));
  const __m256 tiny = _mm256_cmp_ps(largest, _mm256_set1_ps(0x1p-120f), _CMP_LT_OQ);
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  alignas(32) float inverse[8], scale[8], stored[8];
  _mm256_store_ps(inverse, _mm256_andnot_ps(_mm256_or_ps(tiny, special), _mm256_div_ps(k127, largest)));
  _mm256_store_ps(scale,
                  _mm256_blendv_ps(_mm256_andnot_ps(tiny, _mm256_div_ps(largest, k127)), nan, special));
  for (int t = 0; t < 8; ++t) stored[t] = nearest_half(scale[t]);
  round_eight(x, inverse, scale, stored, layout, out, height);
}

#endif

/// `left` numbers of x, the strips they take, `height` records apart.
RLX_INLINE void round_run(const float* x, int64_t left, const QuantLayout& layout, Record* out,
                          int64_t height) {
  float padded[256];
  const int64_t strips = (left + 31) / 32;
  if (left < 32 * strips) {
    for (int64_t i = 0; i < 32 * strips; ++i) padded[i] = i < left ? x[i] : 0.0f;
    x = padded;
  }
  const Rounding r = rounding_of(x, 32 * strips, layout);
#if defined(RLX_AVX2)
  if (strips == 8) {
    float inverse[8], scale[8], stored[8];
    for (int t = 0; t < 8; ++t) inverse[t] = r.inverse, scale[t] = r.scale, stored[t] = r.stored;
    return round_eight(x, inverse, scale, stored, layout, out, height);
  }
#endif
  for (int64_t t = 0; t < strips; ++t) round_strip(x + 32 * t, r, layout, out[t * height]);
}

}  // namespace rlx::cpu::RLX_ISA
