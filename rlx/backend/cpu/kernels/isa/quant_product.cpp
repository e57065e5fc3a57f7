// Plan. One vector of 32-bit sums holds one output row per lane. A word of a group is [lanes][4 bytes]: the
// dot product instruction adds four products of codes to each lane, with four codes of x broadcast to all of
// them. So no lane is ever summed across, scales are vectors, and a group is one contiguous stream.
//   per strip of 32 (q4_0): 4 loads, 12 shifts and masks, 8 dot products, 1 conversion and 2 multiplications
//   for each row of x
// Up to 8 rows of x share the codes (8 vectors), which leaves 8 sums in f32 and a few temporaries; 4 where
// there are 16 registers. The codes, scale and sums of a strip of x are one record, and the records of the
// rows of a tile are neighbours, so x is one stream too.
// Bound: reading w for few rows (q6_k, the dearest to take apart: 400 bytes a strip against about 60
// operations), the dot product rate for many.
// Levels: also avx512vnni.
#include "rlx/backend/cpu/kernels/isa/quant_product_dot.h"
#include "rlx/backend/cpu/kernels/isa/quant_product_pair.h"
#include "rlx/backend/cpu/kernels/isa/quant_product_round.h"
#include "rlx/backend/cpu/kernels/isa/quant_product_strip.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kTileRows = kRegisters >= 32 ? 8 : 4;
// Strips of two groups that are taken apart at once: what a second cache holds beside the rows of x.
[[maybe_unused]] constexpr int64_t kMostTaken = 256;
// Weights that the first rows of x ask for before they are needed, and how many rows at a time do so: with 16 registers more of them meet
// pairs of groups, which ask for themselves.
[[maybe_unused]] constexpr int64_t kBytesAhead = 4096;
#if defined(RLX_AVX512)
constexpr int kRowsThatAsk = 8;
#elif defined(RLX_AVX2)
constexpr int kRowsThatAsk = 2;
#else
constexpr int kRowsThatAsk = 0;
#endif

void round_rows(const QuantRows& rows, int64_t begin, int64_t end) {
  const QuantView& w = *rows.w;
  const QuantLayout layout = quant_layout(w.kind);
  const int64_t strips = w.strips(), run = layout.elements == 256 ? 8 : 1;  // strips under one scale
  for (int64_t m = begin; m < end; ++m) {
    int64_t first = m / kTileRows * kTileRows, height = kTileRows;
    while (first + height > rows.m || first + height <= m) {
      if (first + height <= rows.m) first += height;
      height /= 2;
    }
    Record* out = reinterpret_cast<Record*>(rows.records) + first * strips + (m - first);
    const float* x = rows.x + m * rows.x_stride;
    int64_t b = 0;
#if defined(RLX_AVX2)
    if (layout.elements == 32) {
      for (; 32 * (b + 8) <= w.k; b += 8, out += 8 * height)
        round_eight_strips(x + 32 * b, layout, out, height);
    }
#endif
    for (; b < w.blocks; ++b) {
      const int64_t last = (b + 1) * w.block_columns < w.k ? (b + 1) * w.block_columns : w.k;
      for (int64_t t = 0; t < w.block_strips; t += run, out += run * height) {
        const int64_t column = b * w.block_columns + 32 * t;
        const int64_t left = last - column < 32 * run ? last - column : 32 * run;
        round_run(x + column, left, layout, out, height);
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
    constexpr int together = kWordsMeetAllRows ? M : 1;
#pragma GCC unroll 8
    for (int from = 0; from < M; from += together) {
      I32 products[together];
#pragma GCC unroll 8
      for (int m = 0; m < together; ++m) {
        products[m] = I32{};
        if constexpr (starts_with_correction(layout)) products[m] = set1(x[from + m].correction[s]);
      }
      dot<layout, words, together>(products, c + s * words,
                                   [&](int m) { return x[from + m].words + s * words; });
#pragma GCC unroll 8
      for (int i = 0; i < together; ++i) {
        const int m = from + i;
        sums[m] = fma(scale * set1(x[m].scale), to_float(products[i]), sums[m]);
        if constexpr (layout.has_least()) sums[m] = fma(least, set1(as_float(x[m].correction[s])), sums[m]);
      }
    }
  }
}

/// `first`: these rows bring the group from memory, and later ones find it in the caches.
template <QuantLayout layout, int M>
void rows_of_x(const QuantView& w, const Record* x, const std::byte* block, bool first, F32* out) {
  F32 sums[M] = {};
  const int64_t strips = layout.elements ? layout.elements / 32 : w.block_strips;
  for (int64_t b = 0; b < w.blocks; ++b, block += w.block_bytes) {
    const Head<layout> head(block);
    const std::byte* strip = block + layout.head_bytes() * kLanes;
    for (int64_t t = 0; t < strips; ++t, strip += layout.strip_bytes() * kLanes, x += M) {
      if (M <= kRowsThatAsk && first) {
        for (int line = 0; line < layout.strip_bytes() * kLanes; line += 64)
          __builtin_prefetch(strip + kBytesAhead + line);
      }
      strip_of_x<layout, M>(head, strip, t, x, sums);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) out[m] = sums[m];
}

/// Where the rows of a group of w come from and go to.
struct GroupRows {
  const QuantRows& rows;
  const std::byte* data;
  float* y;
  int64_t y_stride;
  int lanes;
  F32 factor;

  RLX_INLINE GroupRows(const QuantRows& rows, int64_t g, float* y, int64_t y_stride)
      : rows(rows),
        data(rows.w->data + g * rows.w->blocks * rows.w->block_bytes),
        y(y + g * kLanes),
        y_stride(y_stride) {
    const int64_t left = rows.w->n - g * kLanes;
    lanes = int(left < kLanes ? left : kLanes);
    factor = set1(1.0f);
    if (rows.w->factors) factor = load(rows.w->factors + g * kLanes);
  }
  RLX_INLINE const Record* records(int64_t m) const {
    return reinterpret_cast<const Record*>(rows.records) + m * rows.w->strips();
  }
  RLX_INLINE void put(int64_t m, F32 sum) const { store_n(y + m * y_stride, sum * factor, lanes); }
};

/// Rows [m, end) of x by one group, which no rows before them have met when `first`.
template <QuantLayout layout>
void multiply_group(const GroupRows& g, int64_t m, int64_t end, bool first) {
  const QuantView& w = *g.rows.w;
  for (; m < end; first = false) {
    const Record* x = g.records(m);
    F32 sums[kTileRows];
    int height = kTileRows;
    while (m + height > g.rows.m) height /= 2;
    if (height == 8) {
      rows_of_x<layout, kTileRows>(w, x, g.data, first, sums);
    } else if (height == 4) {
      rows_of_x<layout, 4>(w, x, g.data, first, sums);
    } else if (height == 2) {
      rows_of_x<layout, 2>(w, x, g.data, first, sums);
    } else {
      rows_of_x<layout, 1>(w, x, g.data, first, sums);
    }
    for (int i = 0; i < height; ++i, ++m) g.put(m, sums[i]);
  }
}

/// Whole tiles of rows of x from m on by two groups, one behind the other; the first row that is left.
template <QuantLayout layout>
int64_t multiply_pair(const GroupRows& first, const GroupRows& second, int64_t m, int64_t end) {
#if defined(RLX_AVX2)
  static_assert(kTileRows == kPairRows);
  alignas(kVectorBytes) float sums[2][kPairRows][kLanes];
  const QuantView& w = *first.rows.w;
  alignas(64) TakenStrip<layout> taken[kMostTaken];
  // Few rows wait for memory, and plain words are soon taken apart again.
  constexpr int64_t kWorthTaking = (has_plain_words(layout) ? 4 : 2) * kPairRows;
  const bool takes = m + kWorthTaking <= end && w.strips() <= kMostTaken;
  if (takes) take_pair<layout>(w, first.data, taken);
  for (; m + kPairRows <= end; m += kPairRows) {
    if (takes) {
      rows_of_taken<layout>(taken, w.strips(), first.records(m), sums);
    } else {
      rows_of_pair<layout>(w, first.records(m), first.data, sums);
    }
    for (int i = 0; i < kPairRows; ++i) {
      first.put(m + i, load(sums[0][i]));
      second.put(m + i, load(sums[1][i]));
    }
  }
#else
  (void)first, (void)second, (void)end;
#endif
  return m;
}

template <QuantLayout layout>
void multiply_layout(const QuantRows& rows, const QuantTile& tile, float* y, int64_t y_stride) {
  int64_t g = tile.group_begin;
  if constexpr (takes_pairs(layout)) {
    for (; g + 2 <= tile.group_end; g += 2) {
      const GroupRows first(rows, g, y, y_stride), second(rows, g + 1, y, y_stride);
      const int64_t left = multiply_pair<layout>(first, second, tile.row_begin, tile.row_end);
      const bool none = left == tile.row_begin;
      multiply_group<layout>(first, left, tile.row_end, none);
      multiply_group<layout>(second, left, tile.row_end, none);
    }
  }
  for (; g < tile.group_end; ++g)
    multiply_group<layout>(GroupRows(rows, g, y, y_stride), tile.row_begin, tile.row_end, true);
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
