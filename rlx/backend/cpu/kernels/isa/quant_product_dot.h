// Dot products of numbers t(q) of w, bytes >= 0, with codes of x, -127 .. 127: a word is four of them.
//
// With VNNI one instruction adds the four products of a lane. AVX2 multiplies bytes by pairs into 16 bits, where the sums of a few words
// still fit (2 * 127 * 15 = 3810 for a word of 4-bit codes: eight of them), and widens only then. Elsewhere bytes are split into even and odd
// 16-bit halves. All are exact.
#pragma once

#include "rlx/backend/cpu/kernels/quant/quant_layout.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

#if defined(__AVX512VNNI__) || defined(RLX_AVX2)
using Word = int32_t;  // codes 0 1 2 3
RLX_INLINE Word make_word(const int8_t* q) {
  Word w;
  std::memcpy(&w, q, 4);
  return w;
}
#else
struct Word {
  int16_t even[2], odd[2];  // codes 0 2 and 1 3
};
RLX_INLINE Word make_word(const int8_t* q) { return {{q[0], q[2]}, {q[1], q[3]}}; }
#endif

/// A strip of one row of x.
struct Record {
  Word words[8];
  float scale;
  // Of the sum of codes of each run (the first only where a run is the whole strip): -offset * sum, or for
  // layouts with a least value scale * sum as f32.
  int32_t correction[2];
};

RLX_INLINE float as_float(int32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

#if defined(RLX_AVX2)

constexpr int largest_number(const QuantLayout& l) {
  if (l.code == CodeForm::e2m1) return 24;
  if (l.is_iq1()) return 18;
  return l.code == CodeForm::linear ? (1 << l.bits) - 1 : 255;
}

/// Whether `dot` multiplies t - offset, which is then a signed byte, so that nothing is left to subtract.
constexpr bool subtracts_offset(const QuantLayout& l) {
  return largest_number(l) > 127 && l.offset == 128 && !l.has_least();
}

/// Words whose sums of pairs together are below 2^15.
constexpr int words_that_fit(const QuantLayout& l) { return 32767 / (2 * 127 * largest_number(l)); }

RLX_INLINE __m256i pairs(__m256i weights, __m256i x) { return _mm256_maddubs_epi16(weights, x); }
RLX_INLINE I32 add_pairs(I32 sum, __m256i p) { return sum + (I32)_mm256_madd_epi16(p, _mm256_set1_epi16(1)); }

/// A word of weights meets all rows before the next: 16 registers hold no more.
constexpr bool kWordsMeetAllRows = true;

/// sums[m] += the products of `words` words of each of M rows, x(m) being those of row m.
template <QuantLayout layout, int words, int M, class Rows>
RLX_INLINE void dot(I32* sums, const U32* weights, Rows x) {
  constexpr int fit = words_that_fit(layout);
  constexpr int together = fit >= words ? words : fit >= 4 ? 4 : 2;
  const auto w = [&](int v) { return (__m256i)weights[v]; };
  const auto codes = [&](int m, int v) { return _mm256_set1_epi32(x(m)[v]); };
  if constexpr (fit >= 2) {
#pragma GCC unroll 8
    for (int v = 0; v < words; v += together) {
      __m256i p[M];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) p[m] = pairs(w(v), codes(m, v));
#pragma GCC unroll 8
      for (int i = v + 1; i < v + together; ++i) {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          p[m] = _mm256_add_epi16(p[m], pairs(w(i), codes(m, i)));
          if constexpr (M > 1)
            asm("" : "+x"(p[m]));  // else the compiler makes trees of the sums and runs out of registers
        }
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) sums[m] = add_pairs(sums[m], p[m]);
    }
  } else if constexpr (subtracts_offset(layout)) {
#pragma GCC unroll 8
    for (int v = 0; v < words; ++v) {
      const __m256i centred = _mm256_xor_si256(w(v), _mm256_set1_epi8(-128)), size = _mm256_abs_epi8(centred);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        sums[m] = add_pairs(sums[m], pairs(size, _mm256_sign_epi8(codes(m, v), centred)));
        if constexpr (M > 1) asm("" : "+x"(sums[m]));
      }
    }
  } else {
    const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 8
    for (int v = 0; v < words; ++v) {
      const __m256i low = _mm256_and_si256(w(v), nibble);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(w(v), 4), nibble);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const I32 upper = add_pairs(I32{}, pairs(high, codes(m, v)));
        sums[m] = add_pairs(sums[m] + upper * 16, pairs(low, codes(m, v)));
      }
    }
  }
}

#else

constexpr bool subtracts_offset(const QuantLayout&) { return false; }

/// Eight words stay in registers, and a row is done before the next: products of several rows at once would not stay there as well.
constexpr bool kWordsMeetAllRows = false;

#if defined(__AVX512VNNI__)
RLX_INLINE I32 dot_word(I32 sum, U32 weights, const Word* x) {
  return (I32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, _mm512_set1_epi32(*x));
}
#else
RLX_INLINE I32 pairs(U32 weights, const int16_t* x) {  // low * x[0] + high * x[1] of 16-bit halves
  int32_t both;
  std::memcpy(&both, x, 4);
#if defined(RLX_AVX512)
  return (I32)_mm512_madd_epi16((__m512i)weights, _mm512_set1_epi32(both));
#elif defined(__SSE2__)
  return (I32)_mm_madd_epi16((__m128i)weights, _mm_set1_epi32(both));
#else
  return (I32)(weights & 0xffffu) * x[0] + (I32)(weights >> 16) * x[1];
#endif
}
RLX_INLINE I32 dot_word(I32 sum, U32 weights, const Word* x) {
  return sum + pairs(weights & 0x00ff00ffu, x->even) + pairs((weights >> 8) & 0x00ff00ffu, x->odd);
}
#endif

template <QuantLayout, int words, int M, class Rows>
RLX_INLINE void dot(I32* sums, const U32* weights, Rows x) {
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    I32 other = {};
#pragma GCC unroll 4
    for (int v = 0; v < words; v += 2) {
      sums[m] = dot_word(sums[m], weights[v], x(m) + v);
      other = dot_word(other, weights[v + 1], x(m) + v + 1);
    }
    sums[m] = sums[m] + other;
  }
}

#endif

/// Whether two groups are multiplied at once (quant_product_pair.h).
constexpr bool takes_pairs(const QuantLayout& l) {
#if defined(RLX_AVX2)
  return words_that_fit(l) >= 2;  // else widening is the most of it, and two groups gain nothing
#else
  return l.bits < 0;
#endif
}

/// Whether products begin with the record's correction.
constexpr bool starts_with_correction(const QuantLayout& l) {
  return !l.has_least() && l.offset != 0 && !subtracts_offset(l);
}

}  // namespace rlx::cpu::RLX_ISA
