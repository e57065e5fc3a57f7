// Plan: a tile is as many neighbouring positions of an output row as the registers hold beside two vectors of
// output channels: 6 with 16 registers, 14 with 32. A step loads the weights of two inputs, [pair][panel], and
// spreads the two inputs of every position, which are 4 bytes of the frame where it lies; products of pairs
// are added in 32 bits. On two ports of multiplications and four of additions this is twice the rate of f32.
// With VNNI a word is four inputs of 8 bits, and one instruction multiplies and adds: four times the rate of f32.
// Sums stay in registers over all runs, then become codes: one multiply-add, a clamp, a rounding, and the low
// bytes of both vectors in one store. Bound: multiplications.
// Levels: also avx512vnni.
#include "rlx/backend/cpu/kernels/conv/conv_codes.h"

#include "rlx/backend/cpu/kernels/isa/gemm_tile.h"
#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/kernels/isa/pairs.h"
#include "rlx/backend/cpu/kernels/isa/requantize.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kPanel = 2 * kLanes;
constexpr int kRows = kTileRows;

// ---- sums to codes ----

/// The low bytes of both vectors, in order.
RLX_INLINE void store_codes(std::byte* p, I32 a, I32 b) {
#if defined(RLX_AVX512)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8((__m512i)a));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + kLanes), _mm512_cvtepi32_epi8((__m512i)b));
#elif defined(RLX_AVX2)
  const __m256i mask = _mm256_set1_epi32(0xff);
  const __m256i words = _mm256_packus_epi32(_mm256_and_si256((__m256i)a, mask),
                                            _mm256_and_si256((__m256i)b, mask));  // a0 b0 a1 b1 by quads
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
#else
  for (int i = 0; i < kLanes; ++i) p[i] = std::byte(a[i]), p[kLanes + i] = std::byte(b[i]);
#endif
}

RLX_INLINE int lanes_of(const CodeResult& r, int h) {
  const int left = r.columns - h * kLanes;
  return left < 0 ? 0 : (left < kLanes ? left : kLanes);
}

struct Finish {
  F32 mult[2], offset[2], least, most;

  RLX_INLINE explicit Finish(const CodeResult& r, float quarter = 1)
      : least(set1(r.least)), most(set1(r.most)) {
    for (int h = 0; h < 2; ++h) {
      const int n = lanes_of(r, h);
      mult[h] = (n == kLanes ? load(r.mult + h * kLanes) : load_n(r.mult + h * kLanes, n)) * quarter;
      offset[h] = n == kLanes ? load(r.offset + h * kLanes) : load_n(r.offset + h * kLanes, n);
    }
  }
  RLX_INLINE F32 number(I32 sum, int h) const {
    return min(max(fma(to_float(sum), mult[h], offset[h]), least), most);
  }
};

RLX_INLINE void write_row(const CodeResult& r, const Finish& f, int row, I32 a, I32 b) {
  const F32 x = f.number(a, 0), y = f.number(b, 1);
  if (r.dtype == DType::f32) {
    float* to = static_cast<float*>(r.y) + row * r.row_stride;
    if (r.columns == kPanel) {
      store(to, x);
      store(to + kLanes, y);
      return;
    }
    float t[kPanel];
    store(t, x);
    store(t + kLanes, y);
    for (int i = 0; i < r.columns; ++i) to[i] = t[i];
    return;
  }
  std::byte* to = static_cast<std::byte*>(r.y) + row * r.row_stride;
  const I32 p = round_to_int(x) + r.zero, q = round_to_int(y) + r.zero;
  if (r.columns == kPanel) return store_codes(to, p, q);
  std::byte t[kPanel];
  store_codes(t, p, q);
  for (int i = 0; i < r.columns; ++i) to[i] = t[i];
}

// Rows of codes rounded as by exact arithmetic: sum(row, half) for each of them.
template <class SumOf>
void write_exact(const CodeResult& r, int rows, SumOf sum) {
  const ExactCodes exact{double(r.least), double(r.most), r.exact.half_away};
  ExactCodes::Scales scales[2];
  U32 start[2] = {};
  for (int h = 0; h < 2; ++h) {
    const int n = lanes_of(r, h), low = n < kLanes64 ? n : kLanes64;
    const double* m = r.exact.multipliers + h * kLanes;
    scales[h] = exact.scales(load_n(m, low), load_n(m + low, n - low));
    for (int i = 0; i < n; ++i) start[h][i] = uint32_t(r.exact.start[h * kLanes + i]);
  }
  for (int row = 0; row < rows; ++row) {
    std::byte codes[kPanel];
    store_codes(codes, exact.codes((I32)((U32)sum(row, 0) + start[0]), scales[0]) + r.zero,
                exact.codes((I32)((U32)sum(row, 1) + start[1]), scales[1]) + r.zero);
    std::byte* to = static_cast<std::byte*>(r.y) + row * r.row_stride;
    for (int i = 0; i < r.columns; ++i) to[i] = codes[i];
  }
}

// ---- tiles ----

// Addresses of a tile's positions: a few moving pointers plus 0, 1 or 2 times the distance.
template <int R>
struct Positions {
  static constexpr int kPointers = (R + 2) / 3;
  const std::byte* at[kPointers];
  int64_t distance;

  RLX_INLINE Positions(const std::byte* x, int64_t distance) : distance(distance) {
#pragma GCC unroll 8
    for (int i = 0; i < kPointers; ++i) at[i] = x + 3 * i * distance;
  }
  RLX_INLINE I32 word(int r) const {
    int32_t v;
    std::memcpy(&v, at[r / 3] + r % 3 * distance, sizeof v);
    return set1(v);
  }
  RLX_INLINE void step() {
#pragma GCC unroll 8
    for (int i = 0; i < kPointers; ++i) {
      at[i] += sizeof(int32_t);
      asm("" : "+r"(at[i]));  // keeps the pointers as they are written
    }
  }
};

template <int R>
RLX_INLINE void finish_tile(const CodeTile& t, const I32 (&s)[R][2]) {
  if (t.result.dtype == DType::i32) {
    int32_t* to = static_cast<int32_t*>(t.result.y);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      store(to + r * t.result.row_stride, s[r][0]);
      store(to + r * t.result.row_stride + kLanes, s[r][1]);
    }
    return;
  }
  if (t.result.exact.multipliers != nullptr) {
    I32 kept[R][2];  // sums whose address is taken would not stay in registers
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) kept[r][0] = s[r][0], kept[r][1] = s[r][1];
    return write_exact(t.result, R, [&](int r, int h) { return kept[r][h]; });
  }
  const Finish f(t.result);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) write_row(t.result, f, r, s[r][0], s[r][1]);
}

struct PairKind {
  RLX_INLINE static I32 add(I32 x, I32 w, I32 sum) { return add_pairs(x, w, sum); }
};
#if defined(__AVX512VNNI__)
struct QuadKind {
  RLX_INLINE static I32 add(I32 x, I32 w, I32 sum) {
    return (I32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
  }
};
#endif

/// Sums begin with start.
template <class Kind, int R>
RLX_INLINE void tile_from(const CodeTile& t, const std::byte* w, I32 start0, I32 start1) {
  I32 s[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) s[r][0] = start0, s[r][1] = start1;
  for (int64_t run = 0; run < t.run_count; ++run) {
    Positions<R> x(t.x + t.runs[run], t.distance);
    int64_t steps = t.steps;
    do {
      const I32 w0 = load_bytes<I32>(w), w1 = load_bytes<I32>(w + kVectorBytes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const I32 v = x.word(r);
        s[r][0] = Kind::add(v, w0, s[r][0]);
        s[r][1] = Kind::add(v, w1, s[r][1]);
      }
      x.step();
      w += 2 * kVectorBytes;
    } while (--steps > 0);
  }
  finish_tile(t, s);
}

template <int R>
void tile_of(const CodeTile& t) {
  tile_from<PairKind, R>(t, t.weights, I32{}, I32{});
}
#if defined(__AVX512VNNI__)
template <int R>
void quad_tile_of(const CodeTile& t, int32_t x_zero) {
  const U32 zero = U32{} + uint32_t(-x_zero);
  tile_from<QuadKind, R>(t, t.weights + 2 * kVectorBytes, (I32)(load_bytes<U32>(t.weights) * zero),
                         (I32)(load_bytes<U32>(t.weights + kVectorBytes) * zero));
}
#endif

// A weight stands beside a zero, so that what lies above the 16 bits of an input counts nothing.
template <int R>
void depth_tile_of(const CodeTile& t) {
  I32 s[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) s[r][0] = s[r][1] = I32{};
  const std::byte* w = t.weights;
  for (int64_t tap = 0; tap < t.run_count; ++tap, w += 2 * kVectorBytes) {
    const I32 w0 = load_bytes<I32>(w), w1 = load_bytes<I32>(w + kVectorBytes);
    const std::byte* x = t.x + t.runs[tap];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto* at = reinterpret_cast<const int16_t*>(x + r * t.distance);
      s[r][0] = add_pairs(load_widened(at), w0, s[r][0]);
      s[r][1] = add_pairs(load_widened(at + kLanes), w1, s[r][1]);
    }
  }
  finish_tile(t, s);
}

using TileFunction = void (*)(const CodeTile&);
struct TileTable {
  TileFunction of[kRows];
};
template <int... i>
constexpr TileTable tile_table(Indices<i...>) {
  return {{tile_of<i + 1>...}};
}
template <int... i>
constexpr TileTable depth_table(Indices<i...>) {
  return {{depth_tile_of<i + 1>...}};
}
constexpr TileTable kTiles = tile_table(MakeIndices<kRows>());
constexpr TileTable kDepthTiles = depth_table(MakeIndices<kRows>());

void tile(const CodeTile& t) { kTiles.of[t.rows - 1](t); }
void depth_tile(const CodeTile& t) { kDepthTiles.of[t.rows - 1](t); }

#if defined(__AVX512VNNI__)
struct QuadTable {
  void (*of[kRows])(const CodeTile&, int32_t);
};
template <int... i>
constexpr QuadTable quad_table(Indices<i...>) {
  return {{quad_tile_of<i + 1>...}};
}
constexpr QuadTable kQuadTiles = quad_table(MakeIndices<kRows>());
void quad_tile(const CodeTile& t, int32_t x_zero) { kQuadTiles.of[t.rows - 1](t, x_zero); }
#else
constexpr auto quad_tile = static_cast<void (*)(const CodeTile&, int32_t)>(nullptr);
#endif

typedef int16_t I16 __attribute__((vector_size(kVectorBytes)));

// ---- squares ----

// B' along one axis: d0 - d2, d1 + d2, d2 - d1, d1 - d3.
RLX_INLINE void transform(const I16 (&d)[4], I16 (&t)[4]) {
  t[0] = d[0] - d[2];
  t[1] = d[1] + d[2];
  t[2] = d[2] - d[1];
  t[3] = d[1] - d[3];
}

void square_input(const CodeSquareInput& p) {
  constexpr int lanes = kVectorBytes / 2;
  for (int64_t i = 0; i < p.squares; ++i) {
    const int16_t* square = p.x + 2 * i * p.channels;
    for (int64_t c = 0; c < p.channels; c += lanes) {
      I16 rows[4][4];  // [element along the row][row]
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        I16 d[4], t[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) d[k] = load_bytes<I16>(square + r * p.line + k * p.channels + c);
        transform(d, t);
        for (int k = 0; k < 4; ++k) rows[k][r] = t[k];
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        I16 t[4];
        transform(rows[k], t);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r)
          std::memcpy(p.out + (4 * r + k) * p.plane + i * p.pitch + c, &t[r], sizeof t[r]);
      }
    }
  }
}

// A' along one axis: m0 + m1 + m2, m1 - m2 - m3; modulo 2^32, which the result fits.
void square_output(const CodeSquareOutput& p) {
  for (int64_t c = 0; c < p.channels; c += kPanel) {
    CodeResult result = p.result;
    if (result.exact.multipliers != nullptr) {
      result.exact.multipliers += c, result.exact.start += c;
    } else {
      result.mult += c, result.offset += c;
    }
    result.columns = p.channels - c < kPanel ? int(p.channels - c) : kPanel;
    U32 y[2][2][2];  // [row][column][half]
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      U32 t[2][4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const int32_t* at = p.sums + k * p.plane + c + h * kLanes;
        const U32 m0 = (U32)load(at), m1 = (U32)load(at + 4 * p.plane), m2 = (U32)load(at + 8 * p.plane),
                  m3 = (U32)load(at + 12 * p.plane);
        t[0][k] = m0 + m1 + m2;
        t[1][k] = m1 - m2 - m3;
      }
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        y[r][0][h] = t[r][0] + t[r][1] + t[r][2];
        y[r][1][h] = t[r][1] - t[r][2] - t[r][3];
      }
    }
    const int64_t bytes = result.dtype == DType::f32 ? 4 : 1;
    const auto place = [&](int r) {
      return static_cast<std::byte*>(p.result.y) + (r * p.line_stride + c) * bytes;
    };
    if (result.exact.multipliers != nullptr) {
      for (int r = 0; r < p.rows; ++r) {
        result.y = place(r);
        write_exact(result, p.columns, [&](int k, int h) { return (I32)y[r][k][h] >> 2; });
      }
      continue;
    }
    const Finish f(result, 0.25f);
    for (int r = 0; r < p.rows; ++r) {
      result.y = place(r);
      for (int k = 0; k < p.columns; ++k) write_row(result, f, k, (I32)y[r][k][0], (I32)y[r][k][1]);
    }
  }
}

// ---- sums of codes ----

/// kLanes codes as numbers.
RLX_INLINE F32 load_codes(const std::byte* p, bool is_signed) {
#if defined(RLX_AVX512)
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return to_float((I32)(is_signed ? _mm512_cvtepi8_epi32(v) : _mm512_cvtepu8_epi32(v)));
#elif defined(RLX_AVX2)
  const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return to_float((I32)(is_signed ? _mm256_cvtepi8_epi32(v) : _mm256_cvtepu8_epi32(v)));
#else
  F32 v;
  for (int i = 0; i < kLanes; ++i) v[i] = is_signed ? float(int8_t(p[i])) : float(uint8_t(p[i]));
  return v;
#endif
}

template <bool a_signed, bool b_signed>
void sum_of(const CodeSum& p) {
  const F32 a_mult = set1(p.a_mult), b_mult = set1(p.b_mult), offset = set1(p.offset);
  const auto panel = [&](const std::byte* a, const std::byte* b, std::byte* y) {
    I32 codes[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const F32 v = fma(load_codes(a + h * kLanes, a_signed), a_mult,
                        fma(load_codes(b + h * kLanes, b_signed), b_mult, offset));
      codes[h] = round_to_int(min(max(v, set1(p.least)), set1(p.most))) + p.zero;
    }
    store_codes(y, codes[0], codes[1]);
  };
  int64_t i = 0;
  for (; i + kPanel <= p.n; i += kPanel) panel(p.a + i, p.b + i, p.y + i);
  if (i == p.n) return;
  std::byte a[kPanel] = {}, b[kPanel] = {}, y[kPanel];
  for (int64_t j = i; j < p.n; ++j) a[j - i] = p.a[j], b[j - i] = p.b[j];
  panel(a, b, y);
  for (int64_t j = i; j < p.n; ++j) p.y[j] = y[j - i];
}

void sum(const CodeSum& p) {
  const bool a = p.a_dtype == DType::i8, b = p.b_dtype == DType::i8;
  (a ? (b ? sum_of<true, true> : sum_of<true, false>) : (b ? sum_of<false, true> : sum_of<false, false>))(p);
}

// ---- the frame ----

typedef uint8_t U8Half __attribute__((vector_size(kVectorBytes / 2)));
typedef int8_t I8Half __attribute__((vector_size(kVectorBytes / 2)));

template <class Code, class Half>
RLX_INLINE void widen_codes(const Code* x, int32_t zero, int64_t stride, int64_t n, int16_t* to) {
  constexpr int lanes = kVectorBytes / 2;
  int64_t i = 0;
  for (; stride == 1 && i + lanes <= n; i += lanes) {
    const I16 v = __builtin_convertvector(load_bytes<Half>(x + i), I16) - int16_t(zero);
    std::memcpy(to + i, &v, sizeof v);
  }
  for (; i < n; ++i) to[i] = int16_t(x[i * stride] - zero);
}

void widen(const std::byte* x, DType dtype, int32_t zero, int64_t stride, int64_t n, int16_t* to) {
  if (dtype == DType::u8) {
    widen_codes<uint8_t, U8Half>(reinterpret_cast<const uint8_t*>(x), zero, stride, n, to);
  } else {
    widen_codes<int8_t, I8Half>(reinterpret_cast<const int8_t*>(x), zero, stride, n, to);
  }
}

template <class Code>
RLX_INLINE void largest_of(const std::byte* const* from, int64_t count, int64_t n, Code* to) {
  typedef Code V __attribute__((vector_size(kVectorBytes)));
  int64_t i = 0;
  for (; i + kVectorBytes <= n; i += kVectorBytes) {
    V most = load_bytes<V>(from[0] + i);
    for (int64_t t = 1; t < count; ++t) {
      const V v = load_bytes<V>(from[t] + i);
      most = v > most ? v : most;
    }
    std::memcpy(to + i, &most, sizeof most);
  }
  for (; i < n; ++i) {
    Code most = Code(from[0][i]);
    for (int64_t t = 1; t < count; ++t) most = Code(from[t][i]) > most ? Code(from[t][i]) : most;
    to[i] = most;
  }
}

void largest(const std::byte* const* from, int64_t count, DType dtype, int64_t n, std::byte* to) {
  if (dtype == DType::u8) {
    largest_of(from, count, n, reinterpret_cast<uint8_t*>(to));
  } else {
    largest_of(from, count, n, reinterpret_cast<int8_t*>(to));
  }
}

}  // namespace

ConvCodesKernels conv_codes_kernels() {
  return {kRows, kPanel, tile, quad_tile, depth_tile, square_input, square_output, widen, sum, largest};
}

}  // namespace rlx::cpu::RLX_ISA
