// Plan. The tile of micro.h: R rows of A times P panels of B, each two vectors wide. AVX-512 has 32
// registers, so R <= 14 at P = 1 (28 sums, 2 vectors of B, 1 broadcast); AVX2 and SSE have 16: R <= 6; NEON
// 32: R <= 12.
//   A tile [k][R], B panel [k][2 vectors], sums (+ bias, + residual) -> C -> rest of the epilogue, in place
// Per step of k a tile of 14 rows reads 128 bytes of B and 56 of A for 28 multiply-adds of one vector, so all
// levels of cache feed it; K is cut so that a panel stays near for all tiles of a block: 128 KiB in L2 on AVX-512, 24 KiB
// in L1 elsewhere, where a tile of 6 rows reads B twice as often. The sums wait in C between the cuts; where C is narrower
// than they are, or holds an operand of the epilogue, or the panel is cut off by its edge, in a buffer.
// Bound: multiply-add rate for M above about 8, memory bandwidth of B below.
// Levels: also avx512vnni, for gemm_int8.cpp.
#include "rlx/backend/cpu/kernels/gemm.h"

#include "rlx/backend/cpu/kernels/isa/epilogue.h"
#include "rlx/backend/cpu/kernels/isa/micro.h"
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
struct VectorOf {
  using type = F32;
};
template <>
struct VectorOf<double> {
  using type = F64;
};

constexpr int kMaxRows = kTileRows;
constexpr int64_t kDepth = kPanelInL1 ? (24 << 10) / (2 * kVectorBytes) : 1024;

template <class T>
constexpr int kPanel = 2 * kVectorBytes / int(sizeof(T));

// f32 sums of weights stored as B; f64 sums of f64.
template <class T, class Stored>
struct FloatKind {
  using A = T;
  using B = Stored;
  using Sum = T;
  using Vector = typename VectorOf<T>::type;
  static constexpr int weights = kPanel<T> / 2;
  static constexpr int64_t depth = kDepth;
  static constexpr bool reads_rows = true;
  RLX_INLINE static Vector spread(T x) { return set1(x); }
  RLX_INLINE static Vector load(const B* b) { return RLX_ISA::load(b); }
  RLX_INLINE static Vector multiply_add(Vector x, Vector w, Vector sum) { return fma(x, w, sum); }
};

template <class Kind>
RLX_INLINE RowTiles<Kind> row_tiles(const GemmBlock& g) {
  return {static_cast<const std::byte*>(g.a), g.a_row_bytes, g.k, g.rows, g.tile_rows};
}

// How many steps of the epilogue the tile does before its sums leave the registers: a bias, then a residual.
struct Ending {
  int steps = 0;
  const EpilogueStep *column = nullptr, *element = nullptr;
};

RLX_INLINE Ending ending_of(const Epilogue& e) {
  Ending out;
  if (out.steps < e.count && e.steps[out.steps].kind == EpilogueKind::column_bias)
    out.column = &e.steps[out.steps++];
  if (out.steps < e.count) {
    const EpilogueStep& s = e.steps[out.steps];
    if (s.kind == EpilogueKind::add && s.dtype == DType::f32 && s.value == 1) out.element = &s, ++out.steps;
  }
  return out;
}

// Whether sums may wait in C: nothing else is read there.
RLX_INLINE bool sums_in_c(const GemmBlock& g) {
  bool free = g.c_dtype == DType::f32 && !g.paired && g.k > 0;
  for (int i = 0; i < g.epilogue->count; ++i) free = free && g.epilogue->steps[i].data != g.c;
  return free;
}

template <class B>
void block_of(const GemmBlock& g) {
  using Kind = FloatKind<float, B>;
  const RowTiles<Kind> a = row_tiles<Kind>(g);
  float* sums = static_cast<float*>(g.scratch);
  constexpr int64_t width = kPanel<float>;
  const int together = a.panels();
  const bool direct = sums_in_c(g);
  const Ending ending = ending_of(*g.epilogue);
  const bool one_by_one =
      direct && together == 1 && g.rows <= g.tile_rows;  // panels of a tile, straight to C
  const int group = g.paired ? (together < 2 ? 2 : together & ~1) : (one_by_one ? kMaxPanels : together);
  const B* b = static_cast<const B*>(g.b);
  int64_t column = g.column0, left = g.columns;
  for (int64_t panel = 0; panel < g.panels; panel += group) {
    const int count = int(g.panels - panel < group ? g.panels - panel : group);
    const bool to_c = direct && left >= count * width;
    Sums<float> to{sums, g.rows * width, width};
    if (to_c) {
      to = {static_cast<float*>(g.c) + g.row0 * g.c_row_stride + column, width, g.c_row_stride};
      if (const EpilogueStep* s = ending.column)
        to.column = static_cast<const float*>(s->data) + g.batch_index * s->batch_stride + column;
      if (const EpilogueStep* s = ending.element) {
        to.element = static_cast<const float*>(s->data) + g.batch_index * s->batch_stride +
                     g.row0 * s->row_stride + column;
        to.element_stride = s->row_stride;
      }
    }
    multiply(a, b + panel * g.k * width, count, to);
    const int done = to_c ? ending.steps : 0;
    for (int p = 0; p < count; p += g.paired ? 2 : 1) {
      float* tile = to.data + p * to.panel_stride;
      const int columns = int(left < width ? left : width);
      if (!to_c || done < g.epilogue->count) {
        finish_tile({.values = tile,
                     .second = g.paired ? tile + to.panel_stride : nullptr,
                     .rows = g.rows,
                     .columns = columns,
                     .row0 = g.row0,
                     .column0 = column,
                     .batch_index = g.batch_index,
                     .c = g.c,
                     .c_dtype = g.c_dtype,
                     .c_row_stride = g.c_row_stride,
                     .values_stride = to.row_stride},
                    *g.epilogue, done);
      }
      column += columns;
      left -= columns;
    }
  }
}

void block_f32(const GemmBlock& g) {
  switch (g.b_dtype) {
    case DType::f16:
      return block_of<F16>(g);
    case DType::bf16:
      return block_of<Bf16>(g);
    default:
      return block_of<float>(g);
  }
}

// ---- products of a few thousand multiply-adds: nothing is packed, shared out or planned ----

template <int R, bool whole>
void small_tile(const float* a, const Matrix& m, const float* b, int64_t b_step, int columns, int64_t k,
                float* out) {
  F32 s[R][2] = {};
  for (int64_t i = 0; i < k; ++i, b += b_step) {
    const F32 low = whole || columns >= kLanes ? load(b) : load_n(b, columns);
    const F32 high =
        whole ? load(b + kLanes) : (columns > kLanes ? load_n(b + kLanes, columns - kLanes) : F32{});
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const F32 x = set1(a[r * m.row_stride + i * m.column_stride]);
      s[r][0] = fma(x, low, s[r][0]);
      s[r][1] = fma(x, high, s[r][1]);
    }
  }
  for (int r = 0; r < R; ++r) {
    store(out + r * 2 * kLanes, s[r][0]);
    store(out + r * 2 * kLanes + kLanes, s[r][1]);
  }
}

template <bool whole>
RLX_INLINE void small_column(const Gemm& g, const float* a, int64_t rows, const float* b, int64_t b_step,
                             int columns, float* sums) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    small_tile<4, whole>(a + row * g.a.row_stride, g.a, b, b_step, columns, g.k, sums + row * 2 * kLanes);
  for (; row < rows; ++row)
    small_tile<1, whole>(a + row * g.a.row_stride, g.a, b, b_step, columns, g.k, sums + row * 2 * kLanes);
}

void small_f32(const Gemm& g, void* scratch) {
  constexpr int64_t width = kPanel<float>;
  float* sums = static_cast<float*>(scratch);
  for (int64_t item = 0; item < g.batch; ++item) {
    const float* a = static_cast<const float*>(g.a.data) + item * g.a_batch_stride;
    for (int64_t column = 0; column < g.n; column += width) {
      const int columns = int(g.n - column < width ? g.n - column : width);
      const bool packed = g.packed_b != nullptr;  // its last panel is filled up
      const float* b = packed ? reinterpret_cast<const float*>(g.packed_b->data()) + column * g.k
                              : static_cast<const float*>(g.b.data) + item * g.b_batch_stride + column;
      const int64_t step = packed ? width : g.b.row_stride;
      for (int64_t row = 0; row < g.m; row += kBlockRows) {
        const int64_t rows = g.m - row < kBlockRows ? g.m - row : kBlockRows;
        if (packed || columns == width) {
          small_column<true>(g, a + row * g.a.row_stride, rows, b, step, columns, sums);
        } else {
          small_column<false>(g, a + row * g.a.row_stride, rows, b, step, columns, sums);
        }
        finish_tile({.values = sums,
                     .second = nullptr,
                     .rows = rows,
                     .columns = columns,
                     .row0 = row,
                     .column0 = column,
                     .batch_index = item,
                     .c = static_cast<float*>(g.c) + item * g.c_batch_stride,
                     .c_dtype = DType::f32,
                     .c_row_stride = g.c_row_stride},
                    g.epilogue);
      }
    }
  }
}

// write(columns of C before the panel, sums of the panel) for the products of every panel.
template <class Kind, class Write>
RLX_INLINE void each_panel(const GemmBlock& g, int64_t panel_columns, Write write) {
  constexpr int64_t width = 2 * Kind::weights;
  const RowTiles<Kind> a = row_tiles<Kind>(g);
  auto* sums = static_cast<typename Kind::Sum*>(g.scratch);
  const auto* b = static_cast<const typename Kind::B*>(g.b);
  for (int64_t panel = 0; panel < g.panels; panel += a.panels()) {
    const int count = int(g.panels - panel < a.panels() ? g.panels - panel : a.panels());
    multiply(a, b + panel * g.k * width, count, Sums<typename Kind::Sum>{sums, g.rows * width, width});
    for (int p = 0; p < count; ++p) write((panel + p) * panel_columns, sums + p * g.rows * width);
  }
}

void block_f64(const GemmBlock& g) {
  constexpr int64_t width = kPanel<double>;
  each_panel<FloatKind<double, double>>(g, width, [&](int64_t column, const double* sums) {
    const int64_t columns = g.columns - column < width ? g.columns - column : width;
    for (int64_t r = 0; r < g.rows; ++r) {
      double* c = static_cast<double*>(g.c) + (g.row0 + r) * g.c_row_stride + g.column0 + column;
      for (int64_t j = 0; j < columns; ++j) c[j] = sums[r * width + j];
    }
  });
}

// Complex numbers as a real product: rows of A are (real, imaginary) pairs, a panel of B is its real columns
// followed by its imaginary ones. The real product then holds all four terms of each complex one.
void block_c64(const GemmBlock& g) {
  constexpr int64_t width = kPanel<float>, half = width / 2;
  each_panel<FloatKind<float, float>>(g, half, [&](int64_t column, const float* sums) {
    const int64_t columns = g.columns - column < half ? g.columns - column : half;
    for (int64_t r = 0; r < g.rows; r += 2) {
      const float* re = sums + r * width;
      const float* im = re + width;
      float* c = static_cast<float*>(g.c) + 2 * ((g.row0 + r) / 2 * g.c_row_stride + g.column0 + column);
      for (int64_t j = 0; j < columns; ++j) {
        c[2 * j] = re[j] - im[half + j];
        c[2 * j + 1] = re[half + j] + im[j];
      }
    }
  });
}

// ---- packing ----

RLX_INLINE float get(const float* p) { return *p; }
RLX_INLINE float get(const Bf16* p) {
  const uint32_t bits = uint32_t(p->bits) << 16;
  float v;
  std::memcpy(&v, &bits, 4);
  return v;
}
RLX_INLINE float get(const F16* p) { return f16_to_f32_call(p->bits); }
RLX_INLINE double get(const double* p) { return *p; }

template <class S, class T>
void pack_rows(const Matrix& a, int64_t row0, int64_t rows, int64_t k, int tile_rows, T* out) {
  const S* data = static_cast<const S*>(a.data) + row0 * a.row_stride;
  const int64_t rs = a.row_stride, cs = a.column_stride;
  for (int64_t row = 0; row < rows; row += tile_rows) {
    const int64_t count = rows - row < tile_rows ? rows - row : tile_rows;
    const S* from = data + row * rs;
    if (__is_same(S, T) && count == 1 && cs == 1) {
      std::memcpy(out, from, size_t(k) * sizeof(T));
    } else if (__is_same(S, float) && __is_same(T, float) && cs == 1) {
      pack_words(reinterpret_cast<const std::byte*>(from), rs * 4, count, k, reinterpret_cast<float*>(out));
    } else {
      int64_t i = 0;
      if (__is_same(S, float) && __is_same(T, float) && rs == 1 && count <= kLanes && cs >= kLanes) {
        // Columns of A are rows in memory: whole vectors, whose surplus the next one overwrites. The last ones, which
        // would leave the matrix or the tile, go the slow way.
        const auto* p = reinterpret_cast<const float*>(from);
        auto* to = reinterpret_cast<float*>(out);
        for (; i < k - 1 && (k - i) * count >= kLanes; ++i) store(to + i * count, load(p + i * cs));
      }
      for (; i < k; ++i) {
        for (int64_t r = 0; r < count; ++r) out[i * count + r] = get(from + r * rs + i * cs);
      }
    }
    out += count * k;
  }
}

void pack_a(const Matrix& a, int64_t row0, int64_t rows, int64_t k, int tile_rows, void* out) {
  switch (a.dtype) {
    case DType::f64:
      return pack_rows<double>(a, row0, rows, k, tile_rows, static_cast<double*>(out));
    case DType::f16:
      return pack_rows<F16>(a, row0, rows, k, tile_rows, static_cast<float*>(out));
    case DType::bf16:
      return pack_rows<Bf16>(a, row0, rows, k, tile_rows, static_cast<float*>(out));
    case DType::c64: {
      float* to = static_cast<float*>(out);
      const float* data = static_cast<const float*>(a.data);
      const int64_t tile = tile_rows / 2;
      for (int64_t row = 0; row < rows; row += tile) {
        const int64_t count = rows - row < tile ? rows - row : tile;
        for (int64_t i = 0; i < k; ++i) {
          for (int64_t r = 0; r < count; ++r) {
            const float* z = data + 2 * ((row0 + row + r) * a.row_stride + i * a.column_stride);
            *to++ = z[0];
            *to++ = z[1];
          }
        }
      }
      return;
    }
    default:
      return pack_rows<float>(a, row0, rows, k, tile_rows, static_cast<float*>(out));
  }
}

RLX_INLINE void put(float* p, float v) { *p = v; }
RLX_INLINE void put(double* p, double v) { *p = v; }
RLX_INLINE void put(F16* p, float v) { p->bits = f32_to_f16_call(v); }
RLX_INLINE void put(Bf16* p, float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  p->bits = uint16_t(v == v ? (u + 0x7fffu + ((u >> 16) & 1)) >> 16 : (u >> 16) | 0x40);
}

template <class S, class D>
void pack_columns(const Matrix& b, int64_t column0, int64_t columns, int64_t k, void* out) {
  constexpr int64_t width = sizeof(D) == 8 ? kPanel<double> : kPanel<float>;
  const S* data = static_cast<const S*>(b.data) + column0 * b.column_stride;
  D* to = static_cast<D*>(out);
  int64_t i = 0;
  if (__is_same(S, float) && __is_same(D, float) && b.row_stride == 1 && columns == width) {
    const float* from = reinterpret_cast<const float*>(data);
    for (; i + kLanes <= k; i += kLanes, to += kLanes * width) {
      for (int half = 0; half < 2; ++half) {
        F32 v[kLanes];
        for (int j = 0; j < kLanes; ++j) v[j] = load(from + (half * kLanes + j) * b.column_stride + i);
        transpose(v);
        for (int j = 0; j < kLanes; ++j)
          store(reinterpret_cast<float*>(to) + j * width + half * kLanes, v[j]);
      }
    }
  }
  for (; i < k; ++i, to += width) {
    const S* row = data + i * b.row_stride;
    if (__is_same(S, D) && b.column_stride == 1 && columns == width) {
      std::memcpy(to, row, size_t(width) * sizeof(D));
      continue;
    }
    for (int64_t j = 0; j < columns; ++j) put(to + j, get(row + j * b.column_stride));
    for (int64_t j = columns; j < width; ++j) to[j] = D{};
  }
}

template <class S>
void pack_from(const Matrix& b, int64_t column0, int64_t columns, int64_t k, DType stored, void* out) {
  switch (stored) {
    case DType::f16:
      return pack_columns<S, F16>(b, column0, columns, k, out);
    case DType::bf16:
      return pack_columns<S, Bf16>(b, column0, columns, k, out);
    default:
      return pack_columns<S, float>(b, column0, columns, k, out);
  }
}

void pack_b(const Matrix& b, int64_t column0, int64_t columns, int64_t k, DType stored, void* out) {
  switch (b.dtype) {
    case DType::f64:
      return pack_columns<double, double>(b, column0, columns, k, out);
    case DType::f16:
      return pack_from<F16>(b, column0, columns, k, stored, out);
    case DType::bf16:
      return pack_from<Bf16>(b, column0, columns, k, stored, out);
    case DType::c64: {
      constexpr int64_t width = kPanel<float>, half = width / 2;
      float* to = static_cast<float*>(out);
      for (int64_t i = 0; i < k; ++i, to += width) {
        for (int64_t j = 0; j < half; ++j) {
          const float* z =
              static_cast<const float*>(b.data) + 2 * (i * b.row_stride + (column0 + j) * b.column_stride);
          to[j] = j < columns ? z[0] : 0;
          to[half + j] = j < columns ? z[1] : 0;
        }
      }
      return;
    }
    default:
      return pack_from<float>(b, column0, columns, k, stored, out);
  }
}

}  // namespace

// Squares are turned in registers. Each store writes a whole vector whose surplus the next one overwrites;
// the last ones are cut to size.
void pack_words(const std::byte* rows, int64_t row_bytes, int64_t count, int64_t words, float* out) {
  const float* end = out + count * words;
  int64_t i = 0;
  for (; i + kLanes <= words; i += kLanes) {
    for (int64_t r0 = 0; r0 < count; r0 += kLanes) {
      F32 v[kLanes] = {};
      for (int r = 0; r < kLanes; ++r) {
        if (r0 + r < count) v[r] = load_bytes<F32>(rows + (r0 + r) * row_bytes + i * 4);
      }
      transpose(v);
      const int64_t rest = count - r0;
      for (int j = 0; j < kLanes; ++j) {
        float* to = out + (i + j) * count + r0;
        if (count <= kLanes && to + kLanes <= end) {
          store(to, v[j]);
        } else {
          store_n(to, v[j], int(rest < kLanes ? rest : kLanes));
        }
      }
    }
  }
  for (; i < words; ++i) {
    for (int64_t r = 0; r < count; ++r) std::memcpy(out + i * count + r, rows + r * row_bytes + i * 4, 4);
  }
}

GemmKernels gemm_kernels() {
  static_assert(kMaxRows <= 16);
  GemmKernels k = {.max_tile_rows = kMaxRows,
                   .panel = kPanel<float>,
                   .max_tile_rows_f64 = kMaxRows,
                   .panel_f64 = kPanel<double>,
                   .max_block_rows = kBlockRows,
                   .depth = kDepth,
                   .chunk_bytes = kPanelInL1 ? 0 : 384 << 10,
                   .max_panels = kMaxPanels,
                   .scratch_bytes = kSumsBytes,
                   .block_f32 = block_f32,
                   .block_f64 = block_f64,
                   .block_c64 = block_c64,
                   .small_f32 = small_f32,
                   .pack_a = pack_a,
                   .pack_b = pack_b};
  for (int i = 0; i < kMaxRows; ++i) k.panels_together[i] = panels_for(i + 1);
  return k;
}

}  // namespace rlx::cpu::RLX_ISA
