// Products of rows x [m, k] with packed weights [n, k] (block_decoders.h, which stands before them): y[i, j] = sum over k.
//
// With activations of 8 bits x = s q with whole numbers q, the same s for each strip of 32 along k or each block of 256, so that
//   y = sum over strips of s (scale . dots of codes) + offset . (s sums of q),
// where the dots are exact integers (dequant_matmul says how s and the sums are rounded). Before the kernels stand T (of x and y), kFeatures (k), and what is said at each.
#pragma once

namespace rlx::cuda {

inline constexpr char kPackedShared[] = R"cuda(
constexpr int kStrips = kFeatures / 32, kBlockStrips = Format::kElements / 32;
constexpr int kParts = Format::kHalves ? 2 : 1;  // of a strip with scales and offsets of their own

constexpr i64 kRowBytes = i64(kFeatures / Format::kElements) * Format::kBytes;
inline Strip strip_at(const u8* row, int strip) {
  return Format::strip(row + i64(strip / kBlockStrips) * Format::kBytes, strip % kBlockStrips);
}
inline Strip strip_of(const u8* w, i64 row, int strip) { return strip_at(w + row * kRowBytes, strip); }
inline i32 dot4(u32 a, u32 b, i32 sum) { return __dp4a(i32(a), i32(b), sum); }

// Neighbours of x as codes: those of a block of 256 share a scale, which a warp finds; else strips of 32 do, and their scale is kept as
// f16 is, in the range of its normal numbers. A run without a number above 2^-120 counts as zero.
constexpr int kRun = Format::kElements == 256 ? 256 : 32, kOwn = kRun == 256 ? 8 : 4, kThreads = 32 / kOwn;
inline f32 nearest_half(f32 v) { return fabsf(v) < 6.103515625e-05f || fabsf(v) > 65504.0f ? v : as_f32(to_f16(v)); }
struct Rounded { u32 code[kOwn / 4]; f32 scale; f32 sums[2]; i32 half[2]; };  // sums of x over the halves of the strip, or over all of it; sums of codes over its halves
inline Rounded rounded(const f32 (&v)[kOwn]) {
  f32 top = 0;
  #pragma unroll
  for (int i = 0; i < kOwn; ++i) top = op_max(top, fabsf(v[i]));
  #pragma unroll
  for (int o = 1; o < kRun / kOwn; o *= 2) top = op_max(top, __shfl_xor_sync(~0u, top, o));
  const bool zero = top < 7.52316384526264e-37f;
  const f32 inverse = zero ? 0.0f : 127.0f / top;
  f32 scale = zero ? 0.0f : kRun == 256 ? 1.0f / inverse : top / 127.0f;
  if (top > 3.402823466e+38f) scale = from_bits(0x7fc00000u);  // where there is an infinite x its codes mean nothing
  Rounded out{};
  i32 sum = 0;
  #pragma unroll
  for (int i = 0; i < kOwn; i += 4) {
    // Beside 1.5 2^23 the last bits of a float are a whole number, rounded to the nearest.
    u32 bits[4];
    #pragma unroll
    for (int j = 0; j < 4; ++j) bits[j] = u32(__float_as_int(v[i + j] * inverse + 12582912.0f));
    out.code[i / 4] = __byte_perm(__byte_perm(bits[0], bits[1], 0x0040), __byte_perm(bits[2], bits[3], 0x0040), 0x5410);
    sum = dot4(out.code[i / 4], 0x01010101u, sum);
  }
  #pragma unroll
  for (int o = 1; o < 16 / kOwn; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
  const i32 other = __shfl_xor_sync(~0u, sum, 16 / kOwn);
  out.scale = kRun == 256 ? scale : nearest_half(scale);
  out.half[0] = sum, out.half[1] = other;
  out.sums[0] = kParts == 2 ? scale * f32(sum) : scale * f32(sum + other);
  out.sums[1] = scale * f32(other);
  if (kRun == 32) out.sums[0] = nearest_half(out.sums[0]), out.sums[1] = nearest_half(out.sums[1]);
  return out;
}
)cuda";

// Rows of x as codes in shared memory, and what a unit of weights (packed_units.h) adds to their sums. Before it stand kRows of x, kExact (x stays f32), kKept and kWide
// as for `packed_rows`, kBlockThreads, the functions of Params that few_rows.h names, kInUnits and kPackedUnits.
inline constexpr char kPackedRowParts[] = R"cuda(
constexpr int kLayer = kRows * kStrips;
struct Activations {
  // q8: codes [2 kUnitStrips][kRows][kUnits][4], scales [kRows][kUnits], sums of codes [kRows][kUnits] or s sums [kParts][kRows][kStrips].
  // exact: x [kRows][kStrips][33], so that threads on neighbouring strips read different banks.
  u32* codes;
  f32 *scales, *sums, *exact;
  Activations(void* memory)
      : codes(static_cast<u32*>(memory)), scales(reinterpret_cast<f32*>(codes + 8 * kLayer)), sums(scales + kLayer), exact(static_cast<f32*>(memory)) {}

  // Rows `first`, .. below `m`, by all threads of the block; kBatch loads of a thread are on their way at a time.
  void make(const Params& p, const T* kept, int first, int m) {
    constexpr int kAll = kLayer * kThreads, kRounds = (kAll + kBlockThreads - 1) / kBlockThreads, kBatch = kRounds < 4 ? kRounds : 4;
    #pragma unroll 1
    for (int base = 0; base < kAll; base += kBatch * kBlockThreads) {
      f32 v[kBatch][kOwn] = {};
      #pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        const int e = base + n * kBlockThreads + threadIdx.x, row = e / (kStrips * kThreads), at = e % (kStrips * kThreads);
        if (e < kAll && first + row < m) fetch(v[n], (kKept ? kept + row * kFeatures : row_of(p, first + row)) + at * kOwn);
      }
      #pragma unroll
      for (int n = 0; n < kBatch; ++n) keep(v[n], base + n * kBlockThreads + threadIdx.x);
    }
    __syncthreads();
  }
  static void fetch(f32 (&v)[kOwn], const T* from) {
    constexpr int kTogether = !kWide && !kKept ? 1 : kOwn * sizeof(T) > 16 ? 16 / sizeof(T) : kOwn;
    #pragma unroll
    for (int i = 0; i < kOwn; i += kTogether) {
      const auto some = load<kTogether>(from + i);
      #pragma unroll
      for (int u = 0; u < kTogether; ++u) v[i + u] = as_f32(some.v[u]);
    }
  }
  void keep(const f32 (&v)[kOwn], int e) {
    const int row = e / (kStrips * kThreads), at = e % (kStrips * kThreads), strip = at / kThreads, part = at % kThreads;
    if (kExact) {
      if (e < kLayer * kThreads) {
        #pragma unroll
        for (int i = 0; i < kOwn; ++i) exact[(row * kStrips + strip) * 33 + part * kOwn + i] = v[i];
      }
      return;
    }
    const Rounded q = rounded(v);
    if (e >= kLayer * kThreads) return;
    const int unit = unit_of(strip), place = place_in_unit(strip), at_unit = row * kUnits + unit;
    #pragma unroll
    for (int i = 0; i < kOwn / 4; ++i) {
      const int word = place * 8 + part * (kOwn / 4) + i;
      codes[((word / 4 * kRows + row) * kUnits + unit) * 4 + word % 4] = q.code[i];
    }
    if (part == 0) {
      if (place == 0) scales[at_unit] = q.scale;
      if (kInUnits) {
        Unit<Format>::keep(reinterpret_cast<i32*>(sums), at_unit, place, q.half[0], q.half[1]);
      } else {
        #pragma unroll
        for (int h = 0; Format::kOffsets && h < kParts; ++h) sums[h * kLayer + row * kStrips + strip] = q.sums[h];
      }
    }
  }

  // Unit `at` of each row of weights, which is unit `unit` of x.
  template <int N> void add(f32 (&acc)[N][kRows], const u8* const (&rows)[N], int at, int unit) const {
    #pragma unroll
    for (int s = 0; s < N; ++s) {
      if (!kInUnits) {
        add_strip(acc[s], strip_at(rows[s], at), unit);
        continue;
      }
      const Unit<Format> w(rows[s], at);
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        Pack<u32, 4> q[2 * kUnitStrips];
        #pragma unroll
        for (int j = 0; j < 2 * kUnitStrips; ++j) q[j] = load<4>(codes + ((j * kRows + i) * kUnits + unit) * 4);
        acc[s][i] = fmaf(scales[i * kUnits + unit], w.times(q, reinterpret_cast<const i32*>(sums), i * kUnits + unit), acc[s][i]);
      }
    }
  }

  void add_strip(f32 (&acc)[kRows], const Strip& s, int strip) const {
    #pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (kExact) {
        const f32* const v = exact + (i * kStrips + strip) * 33;
        f32 sum = 0;
        #pragma unroll
        for (int e = 0; e < 32; ++e) {
          const f32 code = f32(i32(i8(s.code[e / 4] >> (8 * (e % 4)))));
          f32 weight = s.scale[e / 16] * code;
          if (Format::kOffsets) weight += s.offset[e / 16];
          sum = fmaf(v[e], weight, sum);
        }
        acc[i] += sum;
        continue;
      }
      const Pack<u32, 4> low = load<4>(codes + (i * kStrips + strip) * 4);
      const Pack<u32, 4> high = load<4>(codes + ((kRows + i) * kStrips + strip) * 4);
      i32 d0 = 0, d1 = 0;
      #pragma unroll
      for (int k = 0; k < 4; ++k) d0 = dot4(s.code[k], low.v[k], d0), d1 = dot4(s.code[4 + k], high.v[k], d1);
      const f32 scale = scales[i * kStrips + strip];
      const f32 dot = Format::kHalves ? fmaf(s.scale[1], f32(d1), s.scale[0] * f32(d0)) : s.scale[0] * f32(d0 + d1);
      acc[i] = fmaf(scale, dot, acc[i]);
      if (Format::kOffsets) {
        acc[i] = fmaf(s.offset[0], sums[i * kStrips + strip], acc[i]);
        if (kParts == 2) acc[i] = fmaf(s.offset[1], sums[kLayer + i * kStrips + strip], acc[i]);
      }
    }
  }
};
)cuda";

// Few rows: every block makes the codes of its rows of x itself and walks over columns of the result, kLanes threads for each
// kEach of them, each the sum of kSides rows of weights. kRows of x a block; kExact keeps x in f32; kGrouped: each row of x has weights of its own. Params and
// its functions are those of column_products (few_rows.h), with weights_of giving a row of blocks, and kWide, kKept and kColumns are meant as there.
inline constexpr char kPackedRows[] = R"cuda(
inline void ask_for(const u8* row, int lane) {
  for (i64 at = lane * 128; at < kRowBytes; at += kLanes * 128) asm volatile("prefetch.global.L2 [%0];" :: "l"(row + at));
}
extern "C" __global__ void __launch_bounds__(256, 3)
packed_rows(Params p, int m, const Expert* experts, i64 slab, int slabs, u64* fault, u64 number) {
  __shared__ alignas(16) T kept[kKept ? kRows * kFeatures : 8];
  extern __shared__ uint4 shared[];
  Activations x(shared);
  const int first = blockIdx.y * kRows;
  const int lane = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  constexpr int kGroup = 256 / kLanes * kEach;
  // The weights do not depend on x: the first of them are on their way before the kernels that make x have ended.
  const auto column_inside = [&](int group, int r) {
    const int c = group * kGroup + team * kEach + r;
    return c < kColumns ? c : kColumns - 1;
  };
  constexpr int kTracks = kEach * kSides;
  if (!kGrouped) {
    #pragma unroll
    for (int t = 0; t < kTracks; ++t) ask_for(weights_of(p, t % kSides, column_inside(blockIdx.x, t / kSides)), lane);
  }
  begin();
  i64 shift = 0;
  if (kGrouped) {
    const i64 expert = i64(experts[first]);
    if (expert < 0 || expert >= slabs) {
      *fault = (number << 40) + u64(first);
      return;
    }
    shift = expert * slab;
  }
  Ahead ahead[kEach][kRows];
  #pragma unroll
  for (int j = 0; j < kEach * kRows; ++j) ask_first(p, first + j % kRows, column_inside(blockIdx.x, j / kRows), ahead[j / kRows][j % kRows]);
  if (kKept) {
    make_rows(p, kept);
    __syncthreads();
  }
  x.make(p, kept, first, m);
  for (int group = blockIdx.x; group * kGroup < kColumns; group += gridDim.x) {
    const u8* from[kTracks];
    #pragma unroll
    for (int t = 0; t < kTracks; ++t) from[t] = weights_of(p, t % kSides, column_inside(group, t / kSides)) + shift;
    // The next ones come to the second cache meanwhile.
    if (!kGrouped && (group + gridDim.x) * kGroup < kColumns) {
      #pragma unroll
      for (int t = 0; t < kTracks; ++t) ask_for(weights_of(p, t % kSides, column_inside(group + gridDim.x, t / kSides)), lane);
    }
    #pragma unroll
    for (int j = 0; j < kEach * kRows; ++j) {
      if (group != blockIdx.x) ask_first(p, first + j % kRows, column_inside(group, j / kRows), ahead[j / kRows][j % kRows]);
      ask_next(p, first + j % kRows, column_inside(group, j / kRows), ahead[j / kRows][j % kRows]);
    }
    f32 acc[kTracks][kRows] = {};
    #pragma unroll 2
    for (int unit = lane; unit < kUnits; unit += kLanes) {
      x.add(acc, from, unit, unit);
    }
    #pragma unroll
    for (int r = 0; r < kTracks; ++r) {
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        #pragma unroll
        for (int o = kLanes / 2; o > 0; o /= 2) acc[r][i] += __shfl_xor_sync(~0u, acc[r][i], o);
      }
    }
    #pragma unroll
    for (int r = 0; r < kEach; ++r) {
      const int column = group * kGroup + team * kEach + r;
      if (lane != 0 || column >= kColumns) continue;
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        f32 sides[kSides];
        #pragma unroll
        for (int s = 0; s < kSides; ++s) sides[s] = acc[r * kSides + s][i];
        if (first + i < m) finish(p, first + i, column, sides, ahead[r][i]);
      }
    }
  }
}
)cuda";

// x as codes, for `packed_tiles`: codes [m][k], scales [m][kStrips], s sums [kParts][m][kStrips].
inline constexpr char kPackedRounding[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
packed_rounding(const T* x, u32* codes, f32* scales, f32* sums, int m) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x, strip = e / kThreads, all = i64(m) * kStrips;
  f32 v[kOwn] = {};
  if (strip < all) {
    #pragma unroll
    for (int i = 0; i < kOwn; ++i) v[i] = as_f32(x[e * kOwn + i]);
  }
  const Rounded q = rounded(v);
  if (strip >= all) return;
  #pragma unroll
  for (int i = 0; i < kOwn / 4; ++i) codes[e * (kOwn / 4) + i] = q.code[i];
  if (e % kThreads == 0) {
    scales[strip] = q.scale;
    #pragma unroll
    for (int h = 0; Format::kOffsets && h < kParts; ++h) sums[h * all + strip] = q.sums[h];
  }
}
)cuda";

// Many rows, on matrix units: tiles of kTileM x kTileN, kStep strips at a time with kTileN * kStep = 256, so that each thread
// decodes one strip of the next step while this one is multiplied. The integer sums of a strip are below 2^20; they
// begin at the bits of 1.5 2^23, so that as floats they are exact numbers without a conversion.
inline constexpr char kPackedTiles[] = R"cuda(
inline void multiply32(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline void multiply16(i32 (&c)[4], u32 a0, u32 a1, u32 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(b));
}
inline f32 number(i32 c) { return __int_as_float(c) - 12582912.0f; }

extern "C" __global__ void __launch_bounds__(256)
packed_tiles(const u32* codes, const f32* scales, const f32* sums, const u8* w, T* y, int m, int n) {
  constexpr int kStride = kStep * 8 + 4, kStart = 0x4b400000;
  constexpr int kWarpM = kTileM / kWarpsM, kWarpN = kTileN / (8 / kWarpsM), kRowTiles = kWarpM / 16, kColumnTiles = kWarpN / 8;
  constexpr int kQuads = kTileM * kStep * 2 / 256;  // pieces of 16 bytes of x that a thread moves
  __shared__ alignas(16) u32 xs[kTileM * kStride];
  __shared__ alignas(16) u32 ws[kTileN * kStride];
  __shared__ f32 x_scale[kStep][kTileM], x_sum[kParts][kStep][kTileM];
  __shared__ f32 w_scale[kParts][kStep][kTileN], w_offset[kParts][kStep][kTileN];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int m0 = blockIdx.y * kTileM, n0 = blockIdx.x * kTileN;
  const int wm = warp % kWarpsM * kWarpM, wn = warp / kWarpsM * kWarpN;
  const int job_column = threadIdx.x % kTileN, job_strip = threadIdx.x / kTileN;
  const int column = n0 + job_column < n ? n0 + job_column : n - 1;
  f32 acc[kRowTiles][kColumnTiles][4] = {};
  Strip next{};
  Pack<u32, 4> next_x[kQuads];
  const auto fetch = [&](int first) {
    if (first + job_strip < kStrips) {
      next = strip_of(w, column, first + job_strip);
    } else {
      next = Strip{};
    }
    #pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int e = i * 256 + threadIdx.x, row = e / (kStep * 2), quad = e % (kStep * 2);
      next_x[i] = Pack<u32, 4>{};
      if (m0 + row < m && first + quad / 2 < kStrips)
        next_x[i] = load<4>(codes + (i64(m0 + row) * kStrips + first) * 8 + quad * 4);
    }
  };
  fetch(0);
  for (int first = 0; first < kStrips; first += kStep) {
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      Pack<u32, 4> q;
      #pragma unroll
      for (int j = 0; j < 4; ++j) q.v[j] = next.code[4 * i + j];
      store(ws + job_column * kStride + job_strip * 8 + 4 * i, q);
    }
    #pragma unroll
    for (int h = 0; h < kParts; ++h) {
      w_scale[h][job_strip][job_column] = next.scale[h];
      if (Format::kOffsets) w_offset[h][job_strip][job_column] = next.offset[h];
    }
    #pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const int e = i * 256 + threadIdx.x, row = e / (kStep * 2), quad = e % (kStep * 2);
      store(xs + row * kStride + quad * 4, next_x[i]);
    }
    for (int e = threadIdx.x; e < kStep * kTileM; e += 256) {
      const int row = e % kTileM, strip = e / kTileM;
      const bool inside = m0 + row < m && first + strip < kStrips;
      const i64 at = i64(m0 + row) * kStrips + first + strip;
      x_scale[strip][row] = inside ? scales[at] : 0.0f;
      if (Format::kOffsets) {
        #pragma unroll
        for (int h = 0; h < kParts; ++h) x_sum[h][strip][row] = inside ? sums[i64(h) * m * kStrips + at] : 0.0f;
      }
    }
    __syncthreads();
    if (first + kStep < kStrips) fetch(first + kStep);
    #pragma unroll
    for (int strip = 0; strip < kStep; ++strip) {
      u32 a[kRowTiles][4];
      f32 sx[kRowTiles][2];
      #pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        const int row = wm + i * 16 + lane / 4;
        const u32* const at = xs + row * kStride + strip * 8 + lane % 4;
        a[i][0] = at[0], a[i][1] = at[8 * kStride], a[i][2] = at[4], a[i][3] = at[8 * kStride + 4];
        sx[i][0] = x_scale[strip][row], sx[i][1] = x_scale[strip][row + 8];
      }
      #pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        const u32* const at = ws + (wn + j * 8 + lane / 4) * kStride + strip * 8 + lane % 4;
        const u32 b0 = at[0], b1 = at[4];
        const int to = wn + j * 8 + lane % 4 * 2;
        f32 sw[kParts][2], ow[kParts][2];
        #pragma unroll
        for (int h = 0; h < kParts; ++h) {
          #pragma unroll
          for (int c = 0; c < 2; ++c) {
            sw[h][c] = w_scale[h][strip][to + c];
            if (Format::kOffsets) ow[h][c] = w_offset[h][strip][to + c];
          }
        }
        #pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          i32 d[kParts][4];
          #pragma unroll
          for (int h = 0; h < kParts; ++h) {
            #pragma unroll
            for (int c = 0; c < 4; ++c) d[h][c] = kStart;
          }
          if (Format::kHalves) {
            multiply16(d[0], a[i][0], a[i][1], b0);
            multiply16(d[kParts - 1], a[i][2], a[i][3], b1);
          } else {
            multiply32(d[0], a[i], b0, b1);
          }
          #pragma unroll
          for (int c = 0; c < 4; ++c) {
            f32 dot = number(d[0][c]) * sw[0][c % 2];
            if (Format::kHalves) dot = fmaf(number(d[kParts - 1][c]), sw[kParts - 1][c % 2], dot);
            acc[i][j][c] = fmaf(dot, sx[i][c / 2], acc[i][j][c]);
            if (Format::kOffsets) {
              const int row = wm + i * 16 + lane / 4 + c / 2 * 8;
              #pragma unroll
              for (int h = 0; h < kParts; ++h) acc[i][j][c] = fmaf(x_sum[h][strip][row], ow[h][c % 2], acc[i][j][c]);
            }
          }
        }
      }
    }
  }
  #pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
    #pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      #pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int row = m0 + wm + i * 16 + lane / 4 + c / 2 * 8, to = n0 + wn + j * 8 + lane % 4 * 2 + c % 2;
        if (row < m && to < n) put(y[i64(row) * n + to], acc[i][j][c]);
      }
    }
  }
}
)cuda";

// Weights as numbers, y [matrices, k, n] from blocks [matrices, n, k]; a thread for each strip, neighbours on neighbouring n.
inline constexpr char kUnpack[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) unpack(const u8* w, f32* y, i64 matrices, i64 n) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x, column = e % n, strip = e / n % kStrips, matrix = e / (n * kStrips);
  if (matrix >= matrices) return;
  const Strip s = strip_of(w, matrix * n + column, int(strip));
  f32* const to = y + (matrix * kFeatures + strip * 32) * n + column;
  #pragma unroll
  for (int i = 0; i < 32; ++i) {
    const f32 weight = s.scale[i / 16] * f32(i32(i8(s.code[i / 4] >> (8 * (i % 4)))));
    to[i * n] = Format::kOffsets ? weight + s.offset[i / 16] : weight;
  }
}
)cuda";

}  // namespace rlx::cuda
