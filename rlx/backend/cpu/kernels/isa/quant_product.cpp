// Plan. One vector of 32-bit sums holds one output row per lane. A word of a group is [lanes][4 bytes]: the
// dot product instruction adds four products of codes to each lane, with four codes of x broadcast to all of
// them. So no lane is ever summed across, scales are vectors, and a group is one contiguous stream.
//   per strip of 32 (q4_0): 4 loads, 12 shifts and masks, 8 dot products, 1 conversion and 2 multiplications
//   for each row of x
// Up to 8 rows of x share the codes (8 vectors), which leaves 8 sums in f32 and a few temporaries; 4 where
// there are 16 registers. The codes, scale and sums of a strip of x are one record, and the records of the
// rows of a tile are neighbours, so x is one stream too.
// Bound: reading w for few rows (q6_k, the dearest to take apart: 400 bytes a strip against about 60
// operations), the dot product rate for many. Without VNNI, bytes are split into even and odd 16-bit halves
// and multiplied by pairs: exact, no saturation.
// Levels: also avx512vnni.
#include "rlx/backend/cpu/kernels/isa/quant_product_strip.h"

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

constexpr int kTileRows = kRegisters >= 32 ? 8 : 4;

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

RLX_INLINE void store_codes(int8_t* q, I32 code) {
#if defined(RLX_AVX512)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8((__m512i)code));
#else
  for (int l = 0; l < kLanes; ++l) q[l] = int8_t(code[l]);
#endif
}

/// `x`: 32 numbers.
RLX_INLINE void round_strip(const float* x, const QuantLayout& layout, Record& out) {
  // As integers, magnitudes are ordered like their values, with infinities and NaN above all of them.
  I32 top = {};
  for (int i = 0; i < 32; i += kLanes) {
    const I32 bits = (I32)abs(load(x + i));
    top = bits > top ? bits : top;
  }
  int32_t largest_bits = 0;
  for (int l = 0; l < kLanes; ++l) largest_bits = top[l] > largest_bits ? top[l] : largest_bits;
  const float largest = as_float(largest_bits);
  const bool finite = largest_bits < 0x7f800000, zero = largest < 0x1p-120f;
  out.scale = finite ? (zero ? 0.0f : largest / 127.0f) : as_float(0x7fc00000);
  const F32 inverse = set1(finite && !zero ? 127.0f / largest : 0.0f);
  int8_t q[32];
  for (int i = 0; i < 32; i += kLanes) {
    // A non-finite number times 0 is NaN; its code does not matter.
    store_codes(q + i, round_to_int(load(x + i) * inverse));
  }
  int32_t sums[2] = {};
  for (int i = 0; i < 16; ++i) sums[0] += q[i], sums[1] += q[16 + i];
  if (layout.run == 32) sums[0] += sums[1];
  for (int s = 0; s < 2; ++s) {
    out.correction[s] = -layout.offset * sums[s];
    if (layout.has_least()) {
      const float total = out.scale * float(sums[s]);
      std::memcpy(&out.correction[s], &total, 4);
    }
  }
  for (int i = 0; i < 8; ++i) out.words[i] = make_word(q + 4 * i);
}

void round_rows(const QuantRows& rows, int64_t begin, int64_t end) {
  const QuantView& w = *rows.w;
  const QuantLayout layout = quant_layout(w.kind);
  const int64_t strips = w.strips();
  for (int64_t m = begin; m < end; ++m) {
    int64_t first = m / kTileRows * kTileRows, height = kTileRows;
    while (first + height > rows.m || first + height <= m) {
      if (first + height <= rows.m) first += height;
      height /= 2;
    }
    Record* out = reinterpret_cast<Record*>(rows.records) + first * strips + (m - first);
    const float* x = rows.x + m * rows.x_stride;
    for (int64_t b = 0; b < w.blocks; ++b) {
      const int64_t last = (b + 1) * w.block_columns < w.k ? (b + 1) * w.block_columns : w.k;
      for (int64_t t = 0; t < w.block_strips; ++t, out += height) {
        const int64_t column = b * w.block_columns + 32 * t, left = last - column;
        if (left >= 32) {
          round_strip(x + column, layout, *out);
        } else {
          float padded[32] = {};
          for (int64_t i = 0; i < left; ++i) padded[i] = x[column + i];
          round_strip(padded, layout, *out);
        }
      }
    }
  }
}

template <QuantLayout layout, int M>
RLX_INLINE void strip_of_x(const Head<layout>& head, const std::byte* strip, int64_t t, const Record* x,
                           F32* sums) {
  U32 c[8];
  load_numbers<layout>(head, strip, t, c);
  constexpr int runs = layout.runs_per_strip(), words = 8 / runs;
#pragma GCC unroll 2
  for (int s = 0; s < runs; ++s) {
    const F32 scale = head.scale(t, s);
    F32 least = {};
    if constexpr (layout.has_least()) least = head.least(t, s);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      I32 a = {}, b = {};
      if constexpr (!layout.has_least() && layout.offset != 0) a = set1(x[m].correction[s]);
#pragma GCC unroll 4
      for (int v = 0; v < words; v += 2) {
        const int word = s * words + v;
        a = dot(a, c[word], x[m].words + word);
        b = dot(b, c[word + 1], x[m].words + word + 1);
      }
      sums[m] = fma(scale * set1(x[m].scale), to_float(a + b), sums[m]);
      if constexpr (layout.has_least()) sums[m] = fma(least, set1(as_float(x[m].correction[s])), sums[m]);
    }
  }
}

template <QuantLayout layout, int M>
void rows_of_x(const QuantView& w, const Record* x, const std::byte* block, F32* out) {
  F32 sums[M] = {};
  const int64_t strips = layout.elements ? layout.elements / 32 : w.block_strips;
  for (int64_t b = 0; b < w.blocks; ++b, block += w.block_bytes) {
    const Head<layout> head(block);
    const std::byte* strip = block + layout.head_bytes() * kLanes;
    for (int64_t t = 0; t < strips; ++t, strip += layout.strip_bytes() * kLanes, x += M) {
      strip_of_x<layout, M>(head, strip, t, x, sums);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) out[m] = sums[m];
}

template <QuantLayout layout>
void multiply_layout(const QuantRows& rows, const QuantTile& tile, float* y, int64_t y_stride) {
  const QuantView& w = *rows.w;
  const int64_t strips = w.strips();
  for (int64_t g = tile.group_begin; g < tile.group_end; ++g) {
    const std::byte* group = w.data + g * w.blocks * w.block_bytes;
    const int64_t left = w.n - g * kLanes;
    const int lanes = int(left < kLanes ? left : kLanes);
    F32 factor = set1(1.0f);
    if (w.factors) factor = load(w.factors + g * kLanes);
    for (int64_t m = tile.row_begin; m < tile.row_end;) {
      const Record* x = reinterpret_cast<const Record*>(rows.records) + m * strips;
      F32 sums[kTileRows];
      int height = kTileRows;
      while (m + height > rows.m) height /= 2;
      if (height == 8) {
        rows_of_x<layout, kTileRows>(w, x, group, sums);
      } else if (height == 4) {
        rows_of_x<layout, 4>(w, x, group, sums);
      } else if (height == 2) {
        rows_of_x<layout, 2>(w, x, group, sums);
      } else {
        rows_of_x<layout, 1>(w, x, group, sums);
      }
      for (int i = 0; i < height; ++i, ++m) store_n(y + m * y_stride + g * kLanes, sums[i] * factor, lanes);
    }
  }
}

void multiply(const QuantRows& rows, const QuantTile& tile, float* y, int64_t y_stride) {
  with_layout(rows.w->kind, [&]<QuantLayout layout>() {
    if constexpr (layout.is_integer()) multiply_layout<layout>(rows, tile, y, y_stride);
  });
}

}  // namespace

QuantProductKernels quant_product_kernels() {
  return {.lanes = kLanes,
          .record_bytes = sizeof(Record),
          .round_rows = round_rows,
          .multiply = multiply,
          .multiply_exact = quant_multiply_exact,
          .decode = quant_decode_groups};
}

}  // namespace rlx::cpu::RLX_ISA
