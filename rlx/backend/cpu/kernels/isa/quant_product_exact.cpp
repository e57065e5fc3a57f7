// Plan. The strips of up to 256 columns of one group are decoded into [column][lanes] (16 KiB: L1), then
// every row of x is multiplied with them: 8 rows at a time share each vector of weights, their sums stay in
// registers over the 256 columns and in y between them. A row alone waits for its own sums, so columns are summed in 8
// chains, which it runs side by side; 8 rows run them one after the other, and a row has the same bits in any company.
// Bound: 32 columns take 32 multiply-adds a row of x and about 5 operations a column for decoding, so from 8
// rows on the multiply-add rate, and decoding below. Values are formed as rlx/quant forms them, so that they
// are bit-equal to its own.
// Levels: also avx512vnni, for quant_product.cpp.
#include "rlx/backend/cpu/kernels/isa/quant_product_strip.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kColumns = 256, kRows = 8, kChains = 8;

/// Columns [0, count) of a strip into out[column * kLanes].
template <QuantLayout layout>
RLX_INLINE void decode_strip(const Head<layout>& head, const std::byte* strip, int64_t t, int count,
                             float* out) {
  U32 raw[8] = {}, c[8];
  if constexpr (!layout.is_grid()) load_codes<layout>(strip, raw);
  if constexpr (layout.code == CodeForm::e4m3 || layout.code == CodeForm::e5m2) {
    constexpr bool e5m2 = layout.code == CodeForm::e5m2;
    bool special = false;
    for (int v = 0; v < 8; ++v) special = special || has_special_fp8<e5m2>(raw[v]);
    if (!special) {
#pragma GCC unroll 32
      for (int e = 0; e < 32; ++e) {
        if (e < count) store(out + e * kLanes, from_finite_fp8<e5m2>(raw[e / 4], e % 4));
      }
      return;
    }
  }
  load_numbers<layout>(head, strip, t, c);
  for (int first = 0; first < count; first += layout.run) {
    const int s = first / layout.run;
    const F32 scale = head.scale(t, s), least = head.least(t, s);
    F32 zero = {};
    if constexpr (layout.scale == ScaleForm::f32_zero) zero = head.zero(s);
    for (int e = first; e < first + layout.run && e < count; ++e) {
      const I32 code = (I32)((c[e / 4] >> (8 * (e % 4))) & 0xffu);
      F32 value;
      if constexpr (layout.code == CodeForm::e4m3) {
        value = from_e4m3(code);
      } else if constexpr (layout.code == CodeForm::e5m2) {
        value = from_e5m2(code);
      } else if constexpr (layout.scale == ScaleForm::f32_zero) {
        value = (to_float(code - layout.offset) - zero) * scale;
      } else {
        F32 number = to_float(code - layout.offset);
        if constexpr (layout.code == CodeForm::e2m1) {  // code 8 is -0
          number = (F32)((I32)number | (((I32)(raw[e / 4] >> (8 * (e % 4))) & 8) << 28));
        }
        value = number * scale;
        if constexpr (layout.has_least()) value = value + least;
      }
      store(out + e * kLanes, value);
    }
  }
}

/// Walks over the columns of group `g`: body(first column, count, values [count][lanes]).
template <QuantLayout layout, class Body>
RLX_INLINE void each_part(const QuantView& w, int64_t g, Body body) {
  alignas(64) float values[kColumns * kLanes];
  const std::byte* block = w.data + g * w.blocks * w.block_bytes;
  int64_t first = 0;
  int count = 0;
  for (int64_t b = 0; b < w.blocks; ++b, block += w.block_bytes) {
    const Head<layout> head(block);
    const std::byte* strip = block + layout.head_bytes() * kLanes;
    const int64_t end = (b + 1) * w.block_columns < w.k ? (b + 1) * w.block_columns : w.k;
    for (int64_t t = 0; t < w.block_strips; ++t, strip += layout.strip_bytes() * kLanes) {
      const int64_t left = end - (b * w.block_columns + 32 * t);
      const int columns = int(left < 32 ? left : 32);
      if (columns <= 0) break;
      if (count + columns > kColumns) {
        body(first, count, values);
        first += count;
        count = 0;
      }
      decode_strip<layout>(head, strip, t, columns, values + count * kLanes);
      count += columns;
    }
  }
  body(first, count, values);
}

/// y += x w for one row of x. An eighth of the columns is a chain; the last one has those that are left over.
RLX_INLINE void row_of_x(const float* x, const float* values, int count, bool is_first, float* y, int lanes) {
  F32 sums[kChains] = {};
  const int length = count / kChains;
  for (int c = 0; c < length; ++c) {
#pragma GCC unroll 8
    for (int i = 0; i < kChains; ++i) {
      const int column = i * length + c;
      sums[i] = fma(load(values + column * kLanes), set1(x[column]), sums[i]);
    }
  }
  for (int c = kChains * length; c < count; ++c)
    sums[kChains - 1] = fma(load(values + c * kLanes), set1(x[c]), sums[kChains - 1]);
  F32 sum = sums[0];
  for (int i = 1; i < kChains; ++i) sum += sums[i];
  store_n(y, is_first ? sum : load_n(y, lanes) + sum, lanes);
}

/// The same sums for kRows rows.
RLX_INLINE void rows_of_x(const float* x, int64_t x_stride, const float* values, int count, bool is_first,
                          float* y, int64_t y_stride, int lanes) {
  const int length = count / kChains;
  alignas(kVectorBytes) float totals[kRows][kLanes];  // not in registers, of which the sums need most
  for (int i = 0, c = 0; i < kChains; ++i) {
    F32 sums[kRows] = {};
    for (const int end = i == kChains - 1 ? count : c + length; c < end; ++c) {
      const F32 w = load(values + c * kLanes);
#pragma GCC unroll 8
      for (int m = 0; m < kRows; ++m) sums[m] = fma(w, set1(x[m * x_stride + c]), sums[m]);
    }
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) store(totals[m], i == 0 ? sums[m] : load(totals[m]) + sums[m]);
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
    float* at = y + m * y_stride;
    const F32 sum = load(totals[m]);
    store_n(at, is_first ? sum : load_n(at, lanes) + sum, lanes);
  }
}

void multiply_part(const QuantRows& rows, const QuantTile& tile, int64_t first, int count,
                   const float* values, float* y, int64_t y_stride, int lanes) {
  const float* x = rows.x + first;
  int64_t m = tile.row_begin;
  for (; m + kRows <= tile.row_end; m += kRows) {
    rows_of_x(x + m * rows.x_stride, rows.x_stride, values, count, first == 0, y + m * y_stride, y_stride,
              lanes);
  }
  for (; m < tile.row_end; ++m) {
    row_of_x(x + m * rows.x_stride, values, count, first == 0, y + m * y_stride, lanes);
  }
}

RLX_INLINE int valid_lanes(const QuantView& w, int64_t g) {
  const int64_t left = w.n - g * kLanes;
  return int(left < kLanes ? left : kLanes);
}

/// out[lane * stride + c] = factor[lane] * values[c][lane], squares in registers.
void turn_columns(const float* values, int count, F32 factor, int lanes, float* out, int64_t stride) {
  int c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    F32 v[kLanes];
    for (int i = 0; i < kLanes; ++i) v[i] = load(values + (c + i) * kLanes) * factor;
    transpose(v);
    for (int lane = 0; lane < lanes; ++lane) store(out + lane * stride + c, v[lane]);
  }
  for (; c < count; ++c) {
    const F32 column = load(values + c * kLanes) * factor;
    for (int lane = 0; lane < lanes; ++lane) out[lane * stride + c] = column[lane];
  }
}

}  // namespace

void quant_multiply_exact(const QuantRows& rows, const QuantTile& tile, float* y, int64_t y_stride) {
  const QuantView& w = *rows.w;
  with_layout(w.kind, [&]<QuantLayout layout>() {
    for (int64_t g = tile.group_begin; g < tile.group_end; ++g) {
      float* column = y + g * kLanes;
      const int lanes = valid_lanes(w, g);
      each_part<layout>(w, g, [&](int64_t first, int count, const float* values) {
        multiply_part(rows, tile, first, count, values, column, y_stride, lanes);
      });
      if (w.factors == nullptr) continue;
      const F32 factor = load(w.factors + g * kLanes);
      for (int64_t m = tile.row_begin; m < tile.row_end; ++m) {
        store_n(column + m * y_stride, load_n(column + m * y_stride, lanes) * factor, lanes);
      }
    }
  });
}

void quant_decode_groups(const QuantView& w, int64_t begin, int64_t end, float* out, int64_t stride) {
  with_layout(w.kind, [&]<QuantLayout layout>() {
    for (int64_t g = begin; g < end; ++g) {
      const int lanes = valid_lanes(w, g);
      F32 factor = set1(1.0f);
      if (w.factors) factor = load(w.factors + g * kLanes);
      each_part<layout>(w, g, [&](int64_t first, int count, const float* values) {
        turn_columns(values, count, factor, lanes, out + g * kLanes * stride + first, stride);
      });
    }
  });
}

}  // namespace rlx::cpu::RLX_ISA
