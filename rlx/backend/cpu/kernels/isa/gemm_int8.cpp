// Plan. The tile of micro.h with sums in i32. A word of A holds the codes of one row that one step
// multiplies:
//   VNNI       four codes, vpdpbusd adds four products of u8 and i8 to each lane; nothing saturates
//   elsewhere  two codes widened to 16 bits, B is widened as it is loaded, pairs of products are added
// (the instruction that multiplies bytes directly saturates its pairs: 255 * 127 * 2 does not fit 16 bits).
// With VNNI a tile of 14 rows reads 128 bytes of B and 56 of A for 28 instructions of 128 operations each,
// so the bound is the dot product rate for M above about 16 and reading B below.
// Sums begin with bias and zero points instead of 0 and go straight to an i32 result. Others make one pass
// through L1 to the result type; a zero point of B adds its row sums there.
// Levels: also avx512vnni.
#include "rlx/backend/cpu/kernels/gemm_int8.h"

#include "rlx/backend/cpu/kernels/isa/epilogue.h"
#include "rlx/backend/cpu/kernels/isa/micro.h"
#include "rlx/backend/cpu/kernels/isa/requantize.h"

namespace rlx::cpu::RLX_ISA {
namespace {

#if defined(__AVX512VNNI__)
constexpr int kGroup = 4;
#else
constexpr int kGroup = 2;
#endif
constexpr int kWidth = 2 * kLanes;  // columns of a panel

struct Int8Kind {
  using A = int32_t;
  using B = int8_t;
  using Sum = int32_t;
  using Vector = I32;
  static constexpr int weights = kLanes * kGroup;
  static constexpr int64_t depth = 131072 / (kWidth * kGroup);  // a panel of 128 KiB
  static constexpr bool reads_rows = kGroup == 4;
  RLX_INLINE static I32 spread(int32_t word) { return set1(word); }
#if defined(__AVX512VNNI__)
  RLX_INLINE static I32 load(const int8_t* b) { return load_bytes<I32>(b); }
  RLX_INLINE static I32 multiply_add(I32 a, I32 w, I32 sum) {
    return (I32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)w);
  }
#elif defined(RLX_AVX512)
  RLX_INLINE static I32 load(const int8_t* b) {
    return (I32)_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
  }
  RLX_INLINE static I32 multiply_add(I32 a, I32 w, I32 sum) {
    return (I32)((U32)sum + (U32)_mm512_madd_epi16((__m512i)a, (__m512i)w));
  }
#elif defined(RLX_AVX2)
  RLX_INLINE static I32 load(const int8_t* b) {
    return (I32)_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
  }
  RLX_INLINE static I32 multiply_add(I32 a, I32 w, I32 sum) {
    return (I32)((U32)sum + (U32)_mm256_madd_epi16((__m256i)a, (__m256i)w));
  }
#elif defined(__SSE2__)
  RLX_INLINE static I32 load(const int8_t* b) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b));
    return (I32)_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
  }
  RLX_INLINE static I32 multiply_add(I32 a, I32 w, I32 sum) {
    return (I32)((U32)sum + (U32)_mm_madd_epi16((__m128i)a, (__m128i)w));
  }
#else
  RLX_INLINE static I32 load(const int8_t* b) { return (I32)vmovl_s8(vld1_s8(b)); }
  RLX_INLINE static I32 multiply_add(I32 a, I32 w, I32 sum) {
    const int16x8_t x = (int16x8_t)a, y = (int16x8_t)w;
    const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
    return (I32)((U32)sum + (U32)vpaddq_s32(low, high));
  }
#endif
};

// ---- results ----

template <class V, class T>
RLX_INLINE V load_part(const T* p, int n, int lanes) {
  if (n >= lanes) return load_bytes<V>(p);
  V v = {};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}

/// The low byte of every lane.
RLX_INLINE void store_bytes(std::byte* p, I32 v, int n) {
#if defined(RLX_AVX512)
  if (n >= kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8((__m512i)v));
    return;
  }
#endif
  for (int i = 0; i < kLanes && i < n; ++i) p[i] = std::byte(v[i]);
}

// One panel of sums [rows][2 vectors] and where they belong.
struct Tile {
  int32_t* sums;
  int64_t row0, rows, column0;
  int columns;
};

// What the sums of a panel begin with: bias - z centred, in unsigned arithmetic, which wraps.
RLX_INLINE void start_sums(const GemmInt8Block& g, int64_t column0, int columns, int32_t* start) {
  const GemmInt8& product = *g.product;
  const uint32_t zero = uint32_t(product.a_zero) + (product.a.dtype == DType::i8 ? 128u : 0u);
  const int32_t* bias = product.bias == nullptr ? nullptr : product.bias + g.group * product.n + column0;
  for (int at = 0; at < kWidth; at += kLanes) {
    U32 v = (U32)load(g.b->centred_sums() + column0 + at) * (0u - zero);
    if (bias != nullptr) v += load_part<U32>(bias + at, columns - at, kLanes);
    store(start + at, (I32)v);
  }
}

// write(row, h, sums) for every half h of every row, less zeros * row sum.
template <class Write>
RLX_INLINE void each_corrected(const GemmInt8Block& g, const Tile& t, Write write) {
  const auto all = [&](auto row_term) {
    for (int64_t r = 0; r < t.rows; ++r) {
      const int32_t* at = t.sums + r * kWidth;
      write(r, 0, (I32)((U32)load(at) - row_term(r, 0)));
      write(r, 1, (I32)((U32)load(at + kLanes) - row_term(r, 1)));
    }
  };
  if (g.b->zeros() == nullptr) {
    all([](int64_t, int) { return U32{}; });
  } else {
    const U32 zeros[2] = {(U32)load(g.b->zeros() + t.column0), (U32)load(g.b->zeros() + t.column0 + kLanes)};
    all([&](int64_t r, int h) { return zeros[h] * uint32_t(g.row_sums[r]); });
  }
}

void write_sums(const GemmInt8Block& g, const Tile& t) {
  const int64_t stride = g.product->c_row_stride;
  int32_t* c = static_cast<int32_t*>(g.product->c) + t.row0 * stride + t.column0;
  each_corrected(g, t, [&](int64_t r, int h, I32 v) {
    int32_t* to = c + r * stride + h * kLanes;
    const int columns = t.columns - h * kLanes;
    if (columns >= kLanes) return store(to, v);
    for (int j = 0; j < columns; ++j) to[j] = v[j];
  });
}

template <bool away>
void write_codes(const GemmInt8Block& g, const Tile& t) {
  const GemmInt8& product = *g.product;
  const Requantize& q = product.requantize;
  const double lowest = product.c_dtype == DType::i8 ? -128 : 0;
  const ExactCodes exact{lowest - q.zero_point, lowest + 255 - q.zero_point, away};
  F64 scale[4];
  for (int i = 0; i < 4; ++i) {
    const int at = i * kLanes64;
    scale[i] = q.multipliers == nullptr
                   ? set1(q.multiplier)
                   : load_part<F64>(q.multipliers + t.column0 + at, t.columns - at, kLanes64);
  }
  const ExactCodes::Scales scales[2] = {exact.scales(scale[0], scale[1]), exact.scales(scale[2], scale[3])};
  std::byte* c = static_cast<std::byte*>(product.c) + t.row0 * product.c_row_stride + t.column0;
  each_corrected(g, t, [&](int64_t r, int h, I32 v) {
    std::byte* to = c + r * product.c_row_stride + h * kLanes;
    store_bytes(to, exact.codes(v, scales[h]) + q.zero_point, t.columns - h * kLanes);
  });
}

void write_reals(const GemmInt8Block& g, const Tile& t) {
  float* values = reinterpret_cast<float*>(t.sums);
  each_corrected(g, t,
                 [&](int64_t r, int h, I32 v) { store(values + r * kWidth + h * kLanes, to_float(v)); });
  finish_tile({.values = values,
               .second = nullptr,
               .rows = t.rows,
               .columns = t.columns,
               .row0 = t.row0,
               .column0 = t.column0,
               .batch_index = g.group,
               .c = g.product->c,
               .c_dtype = g.product->c_dtype,
               .c_row_stride = g.product->c_row_stride},
              g.product->epilogue);
}

void block(const GemmInt8Block& g) {
  const GemmInt8& product = *g.product;
  const int64_t steps = (product.k + kGroup - 1) / kGroup, panel_bytes = steps * kGroup * kWidth;
  const RowTiles<Int8Kind> a{static_cast<const std::byte*>(g.a), g.a_row_bytes, steps, g.rows, g.tile_rows};
  int32_t* sums = static_cast<int32_t*>(g.scratch);
  const int8_t* b = reinterpret_cast<const int8_t*>(g.b->data());
  const bool direct = product.c_dtype == DType::i32 && g.b->zeros() == nullptr && steps <= Int8Kind::depth;
  const bool one_by_one =
      direct && a.panels() == 1 && g.rows <= g.tile_rows;  // panels of a tile, straight to C
  const int group = one_by_one ? kMaxPanels : a.panels();
  for (int64_t panel = g.first; panel < g.last; panel += group) {
    const int count = int(g.last - panel < group ? g.last - panel : group);
    alignas(64) int32_t start[kMaxPanels * kWidth];
    for (int p = 0; p < count; ++p) {
      const int64_t column0 = (panel + p) * kWidth, left = product.n - column0;
      start_sums(g, column0, int(left < kWidth ? left : kWidth), start + p * kWidth);
    }
    if (direct && product.n - panel * kWidth >= count * kWidth) {
      int32_t* c = static_cast<int32_t*>(product.c) + g.row0 * product.c_row_stride + panel * kWidth;
      multiply(a, b + panel * panel_bytes, count, Sums<int32_t>{c, kWidth, product.c_row_stride}, start);
      continue;
    }
    multiply(a, b + panel * panel_bytes, count, Sums<int32_t>{sums, g.rows * kWidth, kWidth}, start);
    for (int p = 0; p < count; ++p) {
      const int64_t column0 = (panel + p) * kWidth, left = product.n - column0;
      const Tile t{sums + p * g.rows * kWidth, g.row0, g.rows, column0, int(left < kWidth ? left : kWidth)};
      switch (product.c_dtype) {
        case DType::i32:
          write_sums(g, t);
          break;
        case DType::i8:
        case DType::u8:
          product.requantize.half_away ? write_codes<true>(g, t) : write_codes<false>(g, t);
          break;
        default:
          write_reals(g, t);
      }
    }
  }
}

// ---- packing ----

#if defined(__AVX512VNNI__)
RLX_INLINE int32_t word_of(const uint8_t* codes, int64_t stride, int64_t count, uint8_t flip) {
  uint8_t w[4] = {};
  for (int64_t i = 0; i < 4 && i < count; ++i) w[i] = uint8_t(codes[i * stride] ^ flip);
  int32_t word;
  std::memcpy(&word, w, 4);
  return word;
}
#else
RLX_INLINE int32_t word_of(const uint8_t* codes, int64_t stride, int64_t count, uint8_t flip) {
  uint32_t word = 0;
  for (int64_t i = 0; i < 2 && i < count; ++i) word |= uint32_t(codes[i * stride] ^ flip) << (16 * i);
  return int32_t(word);
}
#endif

void pack_a(const Matrix& a, int64_t row0, int64_t rows, int64_t k, int tile_rows, void* out,
            int32_t* row_sums) {
  const uint8_t* data = static_cast<const uint8_t*>(a.data) + row0 * a.row_stride;
  const uint8_t flip = a.dtype == DType::i8 ? 0x80 : 0;
  const int64_t words = (k + kGroup - 1) / kGroup;
  int32_t* to = static_cast<int32_t*>(out);
  for (int64_t row = 0; row < rows; row += tile_rows) {
    const int64_t count = rows - row < tile_rows ? rows - row : tile_rows;
    const uint8_t* from = data + row * a.row_stride;
    int64_t i = 0;
    if (kGroup == 4 && a.column_stride == 1) {
      i = k / 4;
      pack_words(reinterpret_cast<const std::byte*>(from), a.row_stride, count, i,
                 reinterpret_cast<float*>(to));
      const I32 flips = set1(int32_t(flip * 0x01010101u));
      int64_t j = 0;
      for (; flip != 0 && j + kLanes <= i * count; j += kLanes) store(to + j, load(to + j) ^ flips);
      for (; flip != 0 && j < i * count; ++j) to[j] ^= flips[0];
    }
    for (; i < words; ++i) {
      for (int64_t r = 0; r < count; ++r) {
        to[i * count + r] = word_of(from + r * a.row_stride + i * kGroup * a.column_stride, a.column_stride,
                                    k - i * kGroup, flip);
      }
    }
    for (int64_t r = 0; row_sums != nullptr && r < count; ++r) {
      uint32_t sum = 0;
      const uint8_t* codes = from + r * a.row_stride;
      for (int64_t j = 0; j < k; ++j) sum += uint8_t(codes[j * a.column_stride] ^ flip);
      row_sums[row + r] = int32_t(sum);
    }
    to += count * words;
  }
}

void pack_b(const Matrix& b, int64_t column0, int64_t columns, int64_t k, void* out, int32_t* sums) {
  const int8_t* data = static_cast<const int8_t*>(b.data) + column0 * b.column_stride;
  int8_t* to = static_cast<int8_t*>(out);
  for (int j = 0; j < kWidth; ++j) sums[j] = 0;
  for (int64_t i = 0; i < k; i += kGroup, to += kWidth * kGroup) {
    for (int64_t j = 0; j < kWidth; ++j) {
      for (int64_t l = 0; l < kGroup; ++l) {
        const bool inside = j < columns && i + l < k;
        const int8_t code = inside ? data[(i + l) * b.row_stride + j * b.column_stride] : int8_t(0);
        to[j * kGroup + l] = code;
        sums[j] += code;
      }
    }
  }
}

}  // namespace

GemmInt8Kernels gemm_int8_kernels() {
  GemmInt8Kernels k = {.max_tile_rows = kTileRows,
                       .panel = kWidth,
                       .group = kGroup,
                       .max_block_rows = kBlockRows,
                       .depth = Int8Kind::depth,
                       .scratch_bytes = kSumsBytes,
                       .block = block,
                       .pack_a = pack_a,
                       .pack_b = pack_b};
  for (int i = 0; i < kTileRows; ++i) k.panels_together[i] = panels_for(i + 1);
  return k;
}

}  // namespace rlx::cpu::RLX_ISA
