// Plan. One vector of 32-bit sums holds one output row per lane. A word of a group is [lanes][4 bytes]: the
// dot product instruction adds four products of codes to each lane, with four codes of x broadcast to all of
// them. So no lane is ever summed across, scales are vectors, and a group is one contiguous stream.
//   per block of 32 (q4_0): 4 loads, 8 masks, 8 dot products, 1 conversion, 2 multiply-adds for each row of x
// Up to 8 rows of x share the unpacked codes (8 vectors), which leaves 8 sums in f32 and a few temporaries.
// Bound: reading w for few rows (18 bytes per lane and block need 30 of the 60 cycles memory takes for them),
// the dot product rate for many. Without VNNI, bytes are split into even and odd 16-bit halves and multiplied
// by pairs: exact, no saturation.
#include "rlx/backend/cpu/kernels/quant_product.h"
#include "rlx/backend/cpu/kernels/quant_layout.h"
#include "rlx/backend/cpu/simd/narrow.h"

namespace rlx::cpu::RLX_ISA {
namespace {

#if defined(__AVX512VNNI__)
using Word = int32_t;  // codes 0 1 2 3
RLX_INLINE I32 dot(I32 sum, U32 weights, const Word* x) {
  return (I32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, _mm512_set1_epi32(*x));
}
RLX_INLINE Word make_word(const int8_t* q) {
  Word w;
  std::memcpy(&w, q, 4);
  return w;
}
#else
struct Word {
  int16_t even[2], odd[2];  // codes 0 2 and 1 3
};
RLX_INLINE I32 pairs(U32 weights, const int16_t* x) {  // low * x[0] + high * x[1] of 16-bit halves
  int32_t both;
  std::memcpy(&both, x, 4);
#if defined(RLX_AVX512)
  return (I32)_mm512_madd_epi16((__m512i)weights, _mm512_set1_epi32(both));
#elif defined(RLX_AVX2)
  return (I32)_mm256_madd_epi16((__m256i)weights, _mm256_set1_epi32(both));
#elif defined(__SSE2__)
  return (I32)_mm_madd_epi16((__m128i)weights, _mm_set1_epi32(both));
#else
  return (I32)(weights & 0xffffu) * x[0] + (I32)(weights >> 16) * x[1];
#endif
}
RLX_INLINE I32 dot(I32 sum, U32 weights, const Word* x) {
  return sum + pairs(weights & 0x00ff00ffu, x->even) + pairs((weights >> 8) & 0x00ff00ffu, x->odd);
}
RLX_INLINE Word make_word(const int8_t* q) { return {{q[0], q[2]}, {q[1], q[3]}}; }
#endif

void round_rows(const float* x, int64_t x_stride, const QuantRows& rows, int64_t begin, int64_t end) {
  for (int64_t m = begin; m < end; ++m) {
    const float* row = x + m * x_stride;
    Word* words = reinterpret_cast<Word*>(rows.codes) + m * rows.k / 4;
    for (int64_t b = 0; b < rows.k / 32; ++b) {
      F32 top = {};
      for (int i = 0; i < 32; i += kLanes) top = max(top, abs(load(row + b * 32 + i)));
      const float largest = reduce_max(top), scale = largest / 127.0f;
      const F32 inverse = set1(largest > 0 ? 127.0f / largest : 0.0f);
      int8_t q[32];
      for (int i = 0; i < 32; i += kLanes) {
        const I32 code = round_to_int(load(row + b * 32 + i) * inverse);
        for (int l = 0; l < kLanes; ++l) q[i + l] = int8_t(code[l]);
      }
      rows.scales[m * rows.k / 32 + b] = scale;
      for (int half = 0; half < 2; ++half) {
        int32_t sum = 0;
        for (int i = 0; i < 16; ++i) sum += q[half * 16 + i];
        rows.sums[m * rows.k / 16 + b * 2 + half] = sum;
      }
      for (int i = 0; i < 8; ++i) words[b * 8 + i] = make_word(q + 4 * i);
    }
  }
}

RLX_INLINE U32 word(const std::byte* p) { return load_bytes<U32>(p); }
RLX_INLINE F32 halves(const std::byte* p) { return load(reinterpret_cast<const F16*>(p)); }
// GCC 12 widens bytes through a conversion of vectors one by one, hence the intrinsics.
RLX_INLINE F32 bytes(const std::byte* p, bool is_signed) {
#if defined(RLX_AVX512)
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return to_float((I32)(is_signed ? _mm512_cvtepi8_epi32(v) : _mm512_cvtepu8_epi32(v)));
#elif defined(RLX_AVX2)
  const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return to_float((I32)(is_signed ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v)));
#else
  typedef uint8_t U8 __attribute__((vector_size(kLanes)));
  typedef int8_t I8 __attribute__((vector_size(kLanes)));
  if (is_signed) return to_float(__builtin_convertvector(load_bytes<I8>(p), I32));
  return to_float(__builtin_convertvector(load_bytes<U8>(p), I32));
#endif
}

// What one block needs of x: words, scales and sums of row m from block `b` of `elements` on.
struct Part {
  const Word* words;
  const float* scales;
  const int32_t* sums;
};
RLX_INLINE Part part(const QuantRows& r, int64_t m, int64_t first) {
  return {reinterpret_cast<const Word*>(r.codes) + (m * r.k + first) / 4, r.scales + (m * r.k + first) / 32,
          r.sums + (m * r.k + first) / 16};
}

constexpr uint32_t kNibbles = 0x0f0f0f0fu;
constexpr int64_t kWord = kVectorBytes;  // bytes of one word of a group

template <QuantKind kind, int M>
RLX_INLINE void block(const std::byte* w, const Part* x, F32* sums) {
  if constexpr (kind == QuantKind::q4_0) {
    U32 low[4], high[4];
    for (int v = 0; v < 4; ++v) {
      const U32 c = word(w + v * kWord);
      low[v] = c & kNibbles;
      high[v] = (c >> 4) & kNibbles;
    }
    const F32 d = halves(w + 4 * kWord);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      I32 a = set1(-8 * (x[m].sums[0] + x[m].sums[1])), b = {};
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        a = dot(a, low[v], x[m].words + v);
        b = dot(b, high[v], x[m].words + 4 + v);
      }
      sums[m] = fma(d * set1(x[m].scales[0]), to_float(a + b), sums[m]);
    }
  } else if constexpr (kind == QuantKind::q8_0) {
    U32 c[8];
    for (int v = 0; v < 8; ++v) c[v] = word(w + v * kWord);
    const F32 d = halves(w + 8 * kWord);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      I32 a = set1(-128 * (x[m].sums[0] + x[m].sums[1])), b = {};
#pragma GCC unroll 4
      for (int v = 0; v < 8; v += 2) {
        a = dot(a, c[v], x[m].words + v);
        b = dot(b, c[v + 1], x[m].words + v + 1);
      }
      sums[m] = fma(d * set1(x[m].scales[0]), to_float(a + b), sums[m]);
    }
  } else if constexpr (kind == QuantKind::q4_k) {
    const std::byte* scales = w + 32 * kWord;
    const std::byte* mins = scales + 8 * kLanes;
    const F32 d = halves(mins + 8 * kLanes), dmin = halves(mins + 8 * kLanes + 2 * kLanes);
    for (int t = 0; t < 4; ++t) {
      for (int side = 0; side < 2; ++side) {
        const int sub = 2 * t + side;
        U32 c[8];
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) c[v] = (word(w + (8 * t + v) * kWord) >> (4 * side)) & kNibbles;
        const F32 scale = d * bytes(scales + sub * kLanes, false),
                  least = dmin * bytes(mins + sub * kLanes, false);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          I32 a = {}, b = {};
#pragma GCC unroll 4
          for (int v = 0; v < 8; v += 2) {
            a = dot(a, c[v], x[m].words + 8 * sub + v);
            b = dot(b, c[v + 1], x[m].words + 8 * sub + v + 1);
          }
          const float s = x[m].scales[sub];
          const float total = s * float(x[m].sums[2 * sub] + x[m].sums[2 * sub + 1]);
          sums[m] = fma(scale * set1(s), to_float(a + b), sums[m]);
          sums[m] = fma(least, set1(-total), sums[m]);
        }
      }
    }
  } else {
    const std::byte* high = w + 32 * kWord;
    const std::byte* scales = w + 48 * kWord;
    const F32 d = halves(scales + 16 * kLanes);
    for (int half = 0; half < 2; ++half) {
      for (int e = 0; e < 4;
           ++e) {  // elements 32 e ... of the half: nibble e / 2 of low word, bits 2e of high
        U32 c[8];
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
          const U32 low = word(w + (16 * half + 8 * (e % 2) + v) * kWord) >> (4 * (e / 2));
          const U32 top = word(high + (8 * half + v) * kWord) >> (2 * e);
          c[v] = (low & kNibbles) | ((top & 0x03030303u) << 4);
        }
#pragma GCC unroll 2
        for (int s = 0; s < 2; ++s) {
          const int sub = 8 * half + 2 * e + s;
          const F32 scale = d * bytes(scales + sub * kLanes, true);
#pragma GCC unroll 8
          for (int m = 0; m < M; ++m) {
            I32 a = set1(-32 * x[m].sums[sub]);
#pragma GCC unroll 4
            for (int v = 0; v < 4; ++v) a = dot(a, c[4 * s + v], x[m].words + 4 * sub + v);
            sums[m] = fma(scale * set1(x[m].scales[sub / 2]), to_float(a), sums[m]);
          }
        }
      }
    }
  }
}

template <QuantKind kind, int M>
void rows_of_x(const QuantProduct& p, const QuantRows& rows, const std::byte* group, int64_t m0, int64_t row0,
               int lanes) {
  constexpr QuantLayout layout = quant_layout(kind);
  constexpr int64_t group_block = layout.bytes_per_row() * kLanes;
  F32 sums[M] = {};
  for (int64_t first = 0; first < rows.k; first += layout.elements, group += group_block) {
    Part x[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) x[m] = part(rows, m0 + m, first);
    block<kind, M>(group, x, sums);
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) store_n(p.y + (m0 + m) * p.y_stride + row0, sums[m], lanes);
}

template <QuantKind kind>
void multiply_kind(const QuantProduct& p, const QuantRows& rows, int64_t begin, int64_t end) {
  constexpr QuantLayout layout = quant_layout(kind);
  const int64_t group_bytes = rows.k / layout.elements * layout.bytes_per_row() * kLanes;
  for (int64_t g = begin; g < end; ++g) {
    const std::byte* group = p.w->data() + g * group_bytes;
    const int64_t row0 = g * kLanes, left = p.w->n() - row0;
    const int lanes = int(left < kLanes ? left : kLanes);
    int64_t m = 0;
    for (; m + 8 <= p.m; m += 8) rows_of_x<kind, 8>(p, rows, group, m, row0, lanes);
    for (; m + 4 <= p.m; m += 4) rows_of_x<kind, 4>(p, rows, group, m, row0, lanes);
    for (; m + 2 <= p.m; m += 2) rows_of_x<kind, 2>(p, rows, group, m, row0, lanes);
    for (; m < p.m; ++m) rows_of_x<kind, 1>(p, rows, group, m, row0, lanes);
  }
}

void multiply(const QuantProduct& p, const QuantRows& rows, int64_t begin, int64_t end) {
  switch (p.w->kind()) {
    case QuantKind::q4_0:
      return multiply_kind<QuantKind::q4_0>(p, rows, begin, end);
    case QuantKind::q8_0:
      return multiply_kind<QuantKind::q8_0>(p, rows, begin, end);
    case QuantKind::q4_k:
      return multiply_kind<QuantKind::q4_k>(p, rows, begin, end);
    case QuantKind::q6_k:
      return multiply_kind<QuantKind::q6_k>(p, rows, begin, end);
  }
}

}  // namespace

QuantProductKernels quant_product_kernels() {
  return {.lanes = kLanes, .word_bytes = sizeof(Word), .round_rows = round_rows, .multiply = multiply};
}

}  // namespace rlx::cpu::RLX_ISA
