// Products of fp8 with fp8 at any strides and sizes on the matrix units of warps: y [m, n] of x [m, k] and w [k, n], a block for kTileRows rows and 64 columns. Bytes of both come through a
// ring of kStages places of 128 k, rows and columns 144 bytes apart, so that lanes read from different banks; a lane reads four k at once, which are its parts of a product of 16 (f16) or, twice,
// of 32 (units for fp8), for the order of a sum is free.
// Sums of 128 k, or of 32 where fewer than 128 share scales, are scaled and added in f32. The blocks of a cluster take slices of k in turn; their sums are added in their order.
// After kMatrixFragments and kClusterBlocks; before it stand T (of y), Left and Right (of kFp8Numbers), kTileRows (16 or 64), kGroup (neighbours along k that share scales; 0: all do), kScaledRows,
// kScaledColumns (there are scales of x, of w), kLeftRuns and kRightRuns (k are runs), kLeftWide and kRightWide (which begin at multiples of 16 bytes), kEarly (no kernel before this one makes w),
// kSplit, kUnits (the units multiply fp8 itself: 13 binary places) and the macro kClusterShape.
#pragma once

namespace rlx::cuda {

// Four codes as two pairs of f16, exact but for kUnit. NaN stays NaN, infinities of e5m2 stay so.
inline constexpr char kFp8Numbers[] = R"cuda(
struct E5M2 {
  static constexpr f32 kUnit = 1;
  static void halves(u32 w, u32& low, u32& high) { low = __byte_perm(w, 0, 0x1404), high = __byte_perm(w, 0, 0x3424); }
};
struct E4M3 {
#if __CUDA_ARCH__ >= 890
  static constexpr f32 kUnit = 1;
  static u32 pair(u16 codes) { u32 r; asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(codes)); return r; }
  static void halves(u32 w, u32& low, u32& high) { low = pair(u16(w)), high = pair(u16(w >> 16)); }
#else
  // Exponents of four bits are the last four of five: 2^-8 of what they are. 0x7f alone carries into the sign.
  static constexpr f32 kUnit = 256;
  static u32 pair(u32 codes) {
    const u32 size = codes & 0x7f007f00u, none = (size + 0x01000100u) & 0x80008000u;
    return (codes & 0x80008000u) | size >> 1 | none >> 1;
  }
  static void halves(u32 w, u32& low, u32& high) { low = pair(__byte_perm(w, 0, 0x1404)), high = pair(__byte_perm(w, 0, 0x3424)); }
#endif
};
)cuda";

inline constexpr char kFp8Product[] = R"cuda(
constexpr int kTileColumns = 64, kDeep = 128, kPitch = 144, kStages = 3, kThreads = 128;
constexpr int kPlace = (kTileRows + kTileColumns) * kPitch;
constexpr int kM = kTileRows == 16 ? 1 : 2, kN = kTileRows == 16 ? 2 : 4;  // products of a warp
constexpr int kPromote = kGroup % kDeep == 0 ? kDeep : 32;
constexpr f32 kWhole = kUnits ? 1 : Left::kUnit * Right::kUnit;

// Of one axis of a matrix in elements, and from one matrix to the next.
struct Lies { i64 row, column, batch; };
// A factor of 1 has no address; `block` columns share one.
struct Factors { const f32* at; i64 row, column, batch; int block; };
struct Params {
  const u8 *x, *w;
  T* y;
  Lies xs, ws, ys;  // of w rows are k
  Factors of_x, of_w;
  int m, n, k;
};

// 16 neighbours along k of one row or column; what lies outside is zero.
template <bool kWide> void copy16(u32 to, const u8* from, i64 step, int count) {
  if (kWide) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(count) : "memory");
    return;
  }
  #pragma unroll 2
  for (int word = 0; word < 4; ++word) {
    u32 v = 0;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (word * 4 + i < count) v |= u32(from[(word * 4 + i) * step]) << (8 * i);
    }
    asm volatile("st.shared.b32 [%0], %1;" :: "r"(to + 4 * word), "r"(v) : "memory");
  }
}
// A slice of `kLines` rows or columns from `first` on.
template <int kLines, bool kRuns, bool kWide> void ask_lines(u32 to, const u8* from, i64 line, i64 step, int first, int lines, int k0, int k) {
  constexpr int kCount = kLines * 8 / kThreads, kTogether = kWide ? kCount : 1;
  #pragma unroll kTogether
  for (int i = 0; i < kCount; ++i) {
    const int e = i * kThreads + threadIdx.x, at = kRuns ? e / 8 : e % kLines, piece = (kRuns ? e % 8 : e / kLines) * 16;
    const int left = first + at < lines ? k - k0 - piece : 0, count = left < 0 ? 0 : left < 16 ? left : 16;
    copy16<kWide>(to + at * kPitch + piece, count > 0 ? from + (first + at) * line + (k0 + piece) * step : from, step, count);
  }
}

#define kUnitsOf(a_name, b_name) \
  asm("mma.sync.aligned.m16n8k32.row.col.f32." a_name "." b_name ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
inline void multiply32(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], E4M3, E4M3) { kUnitsOf("e4m3", "e4m3"); }
inline void multiply32(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], E4M3, E5M2) { kUnitsOf("e4m3", "e5m2"); }
inline void multiply32(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], E5M2, E4M3) { kUnitsOf("e5m2", "e4m3"); }
inline void multiply32(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], E5M2, E5M2) { kUnitsOf("e5m2", "e5m2"); }

inline u32 word_at(u32 place) { u32 r; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(place) : "memory"); return r; }
inline int within(int x, int count) { return x < count ? x : count - 1; }

extern "C" __global__ void kClusterShape __launch_bounds__(kThreads, kTileRows == 16 ? 6 : 2) fp8_product(Params p) {
  extern __shared__ uint4 shared[];
  const u32 ring = u32(__cvta_generic_to_shared(shared));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, rank = blockIdx.x % kSplit;
  const int row0 = blockIdx.y * kTileRows, column0 = blockIdx.x / kSplit * kTileColumns;
  const int rows_at = kTileRows == 16 ? 0 : warp / 2 * 32, columns_at = kTileRows == 16 ? warp * 16 : warp % 2 * 32;
  const u8* const x = p.x + blockIdx.z * p.xs.batch;
  const u8* const w = p.w + blockIdx.z * p.ws.batch;
  const f32* const x_scale = p.of_x.at + (kScaledRows ? blockIdx.z * p.of_x.batch : 0);
  const f32* const w_scale = p.of_w.at + (kScaledColumns ? blockIdx.z * p.of_w.batch : 0);
  const int slices = (p.k + kDeep - 1) / kDeep;
  const auto ask_right = [&](int slice, int place) {
    if (slice < slices) ask_lines<kTileColumns, kRightRuns, kRightWide>(ring + place * kPlace + kTileRows * kPitch, w, p.ws.column, p.ws.row, column0, p.n, slice * kDeep, p.k);
  };
  const auto ask_left = [&](int slice, int place) {
    if (slice < slices) ask_lines<kTileRows, kLeftRuns, kLeftWide>(ring + place * kPlace, x, p.xs.row, p.xs.column, row0, p.m, slice * kDeep, p.k);
  };
  if (kEarly) {
    #pragma unroll
    for (int i = 0; i < kStages - 1; ++i) ask_right(rank + i * kSplit, i);
  }
  begin();
  #pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    if (!kEarly) ask_right(rank + i * kSplit, i);
    ask_left(rank + i * kSplit, i);
    commit();
  }
  f32 sums[kM][kN][4] = {};
  f32 part[kM][kN][4];
  int place = 0;
  for (int slice = rank; slice < slices; slice += kSplit) {
    arrived<kStages - 2>();
    __syncthreads();  // the slice is there, and nobody reads the one before it any more
    const int next = place == 0 ? kStages - 1 : place - 1;
    ask_right(slice + (kStages - 1) * kSplit, next);
    ask_left(slice + (kStages - 1) * kSplit, next);
    commit();
    const u32 left = ring + place * kPlace + (rows_at + g) * kPitch + 4 * t, right = ring + place * kPlace + (kTileRows + columns_at + g) * kPitch + 4 * t;
    if (++place == kStages) place = 0;
    #pragma unroll
    for (int step = 0; step < kDeep / 32; ++step) {
      u32 a[kM][4], b[kN][2];
      #pragma unroll
      for (int i = 0; i < kM; ++i) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) a[i][r] = word_at(left + (i * 16 + r % 2 * 8) * kPitch + step * 32 + r / 2 * 16);
      }
      #pragma unroll
      for (int j = 0; j < kN; ++j) {
        #pragma unroll
        for (int r = 0; r < 2; ++r) b[j][r] = word_at(right + j * 8 * kPitch + step * 32 + r * 16);
      }
      if (step * 32 % kPromote == 0) {
        #pragma unroll
        for (int e = 0; e < kM * kN * 4; ++e) part[e / (kN * 4)][e / 4 % kN][e % 4] = 0;
      }
      if (kUnits) {
        #pragma unroll
        for (int e = 0; e < kM * kN; ++e) multiply32(part[e / kN][e % kN], a[e / kN], b[e % kN], Left{}, Right{});
      } else {
        // Word r of an operand is k 16 r / 2 + 4 t .. of it: the first two are what a product of 16 has at 2 t, the others what it has at 2 t + 8.
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
          u32 ah[kM][4], bh[kN][2];
          #pragma unroll
          for (int i = 0; i < kM; ++i) {
            Left::halves(a[i][2 * half], ah[i][0], ah[i][2]);
            Left::halves(a[i][2 * half + 1], ah[i][1], ah[i][3]);
          }
          #pragma unroll
          for (int j = 0; j < kN; ++j) Right::halves(b[j][half], bh[j][0], bh[j][1]);
          #pragma unroll
          for (int e = 0; e < kM * kN; ++e) multiply(part[e / kN][e % kN], ah[e / kN], bh[e % kN][0], bh[e % kN][1], f16{});
        }
      }
      if ((step + 1) * 32 % kPromote != 0) continue;
      const int begun = slice * kDeep + (step + 1) * 32 - kPromote;
      const i64 group = kGroup > 0 ? begun / kGroup : 0;
      f32 of_row[kM][2], of_column[kN][2];
      #pragma unroll
      for (int i = 0; i < kM * 2; ++i)
        of_row[i / 2][i % 2] = kGroup > 0 && kScaledRows && begun < p.k
                                   ? x_scale[within(row0 + rows_at + i * 8 + g, p.m) * p.of_x.row + group * p.of_x.column] : 1.0f;
      #pragma unroll
      for (int j = 0; j < kN * 2; ++j)
        of_column[j / 2][j % 2] = kGroup > 0 && kScaledColumns && begun < p.k
                                      ? w_scale[group * p.of_w.row + within(column0 + columns_at + j / 2 * 8 + 2 * t + j % 2, p.n) / p.of_w.block * p.of_w.column] : 1.0f;
      #pragma unroll
      for (int e = 0; e < kM * kN * 4; ++e) {
        const int i = e / (kN * 4), j = e / 4 % kN, c = e % 4;
        sums[i][j][c] += kGroup > 0 ? part[i][j][c] * (of_row[i][c / 2] * of_column[j][c % 2]) : part[i][j][c];
      }
    }
  }
  const auto put_sum = [&](int i, int j, int c, f32 sum) {
    const int row = row0 + rows_at + i * 16 + c / 2 * 8 + g, column = column0 + columns_at + j * 8 + 2 * t + c % 2;
    if (row >= p.m || column >= p.n) return;
    f32 v = sum * kWhole;
    if (kGroup == 0 && kScaledRows) v *= x_scale[row * p.of_x.row];
    if (kGroup == 0 && kScaledColumns) v *= w_scale[column / p.of_w.block * p.of_w.column];
    put(p.y[blockIdx.z * p.ys.batch + row * p.ys.row + column * p.ys.column], v);
  };
  if (kSplit == 1) {
    #pragma unroll
    for (int e = 0; e < kM * kN * 4; ++e) put_sum(e / (kN * 4), e / 4 % kN, e % 4, sums[e / (kN * 4)][e / 4 % kN][e % 4]);
    return;
  }
  f32* const parts = reinterpret_cast<f32*>(shared);
  arrived<0>();
  __syncthreads();  // the ring is not needed any more
  #pragma unroll
  for (int e = 0; e < kM * kN * 4; ++e) parts[e * kThreads + threadIdx.x] = sums[e / (kN * 4)][e / 4 % kN][e % 4];
  join_cluster();
  for (int e = rank; e < kM * kN * 4; e += kSplit) {
    f32 sum = 0;
    for (int n = 0; n < kSplit; ++n) sum += in_block(parts + e * kThreads + threadIdx.x, n);
    put_sum(e / (kN * 4), e / 4 % kN, e % 4, sum);
  }
  join_cluster();  // nobody leaves while others read
}
)cuda";

}  // namespace rlx::cuda
