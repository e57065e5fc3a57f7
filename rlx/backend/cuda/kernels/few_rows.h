// Products of few rows, c [m, n] = a [m, k] b [k, n]: as fast as b can be read. Before them stand T, kRows (m), kDepth (k),
// kColumns (n). Sums have a fixed order.
#pragma once

namespace rlx::cuda {

inline constexpr char kFewRowsShared[] = R"cuda(
constexpr int kPiece = 16 / sizeof(T);
struct alignas(16) Piece { T v[kPiece]; };
inline Piece piece_at(const T* p) { return *reinterpret_cast<const Piece*>(p); }
// Read once: it need not stay in the caches.
inline Piece stream_at(const T* p) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p));
  return *reinterpret_cast<Piece*>(&x);
}
// What was asked for before is on its way before what follows begins: else the compiler would save registers by waiting for each.
inline void all_asked() { asm volatile("" ::: "memory"); }  // the bounds of launches leave it the registers
// On its way to the second cache before the kernels that make `a` have ended.
inline void announce(const T* p) { asm volatile("prefetch.global.L2 [%0];" :: "l"(p)); }
constexpr int kLine = 128 / sizeof(T);
)cuda";

// Columns of b are runs: kLanes threads for kEach columns of the result, for each of which they sum kSides columns of b, kLoads loads of a
// thread on their way at a time. Before it stand also kBlocks (of a processor), kWide (addresses are multiples of 16 bytes), kKept (the rows of a are made by each block itself) and
//   struct Params;                                      addresses of operands and results
//   const T* weights_of(p, side, column)                where a column of b begins
//   const T* row_of(p, row)                             a row of a, where it is not kept
//   void make_rows(p, kept)                             the rows of a, by all threads; in front of it, where it is called, nothing is read that others write
//   void finish(p, row, column, const f32 (&)[kSides], const Ahead&)  takes the sums
//   struct Ahead; ask_first(p, row, column, Ahead&); ask_next(p, row, column, Ahead&)  what finish needs from memory, asked for long before it: first what stands at known addresses, later what these
//     say where it is. kNothingAhead where finish needs nothing and takes no Ahead
inline constexpr char kNothingAhead[] = R"cuda(
struct Ahead {};
inline void ask_first(const Params&, int, int, Ahead&) {}
inline void ask_next(const Params&, int, int, Ahead&) {}
template <int N> void finish(const Params& p, int row, int column, const f32 (&sums)[N], const Ahead&) { finish(p, row, column, sums); }
)cuda";

inline constexpr char kColumnProducts[] = R"cuda(
inline Piece weights_at(const T* p) {
  if (kWide) return stream_at(p);
  Piece out;
  #pragma unroll
  for (int u = 0; u < kPiece; ++u) out.v[u] = p[u];
  return out;
}
inline Piece row_piece(const T* p) {
  if (kWide || kKept) return piece_at(p);
  return weights_at(p);
}

extern "C" __global__ void __launch_bounds__(256, kBlocks) column_products(Params p) {
  __shared__ alignas(16) T kept[kKept ? kRows * kDepth : 8];
  constexpr int kGroup = 256 / kLanes * kEach;
  const int lane = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  const auto column_of = [&](int group, int j) { return group * kGroup + team * kEach + j; };
  const auto column_inside = [&](int group, int j) {
    const int c = column_of(group, j);
    return c < kColumns ? c : kColumns - 1;
  };
  #pragma unroll
  for (int j = 0; j < kEach * kSides; ++j) {
    const T* const from = weights_of(p, j % kSides, column_inside(blockIdx.x, j / kSides));
    for (int k = lane * kLine; k < kDepth; k += kLanes * kLine) announce(from + k);
  }
  begin();
  Ahead ahead[kEach][kRows];
  #pragma unroll
  for (int j = 0; j < kEach * kRows; ++j) ask_first(p, j % kRows, column_inside(blockIdx.x, j / kRows), ahead[j / kRows][j % kRows]);
  if (kKept) {
    make_rows(p, kept);
    __syncthreads();
  }
  constexpr int kTracks = kEach * kSides, kBatch = kLoads / kTracks > 2 ? kLoads / kTracks : 2;  // loads on their way at a time
  constexpr bool kWhole = kDepth % (kLanes * kPiece * kBatch) == 0;
  for (int group = blockIdx.x; group * kGroup < kColumns; group += gridDim.x) {
    const T* from[kTracks];
    #pragma unroll
    for (int j = 0; j < kTracks; ++j) from[j] = weights_of(p, j % kSides, column_inside(group, j / kSides));
    #pragma unroll
    for (int j = 0; j < kEach * kRows; ++j) {
      if (group != blockIdx.x) ask_first(p, j % kRows, column_inside(group, j / kRows), ahead[j / kRows][j % kRows]);
      ask_next(p, j % kRows, column_inside(group, j / kRows), ahead[j / kRows][j % kRows]);
    }
    f32 acc[kTracks][kRows] = {};
    for (int start = lane * kPiece; start < kDepth; start += kLanes * kPiece * kBatch) {
      Piece w[kBatch][kTracks];
      #pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        const int k = start + n * kLanes * kPiece;
        const bool inside = kWhole || k < kDepth;
        #pragma unroll
        for (int j = 0; j < kTracks; ++j) w[n][j] = inside ? weights_at(from[j] + k) : Piece{};
      }
      all_asked();
      #pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        const int k = start + n * kLanes * kPiece;
        if (!kWhole && k >= kDepth) break;
        #pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const Piece x = row_piece((kKept ? kept + i * kDepth : row_of(p, i)) + k);
          #pragma unroll
          for (int u = 0; u < kPiece; ++u) {
            #pragma unroll
            for (int j = 0; j < kTracks; ++j) acc[j][i] = fmaf(as_f32(x.v[u]), as_f32(w[n][j].v[u]), acc[j][i]);
          }
        }
      }
    }
    #pragma unroll
    for (int j = 0; j < kTracks; ++j) {
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        #pragma unroll
        for (int o = kLanes / 2; o > 0; o /= 2) acc[j][i] += __shfl_xor_sync(~0u, acc[j][i], o);
      }
    }
    #pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (lane != 0 || column_of(group, j) >= kColumns) continue;
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        f32 sums[kSides];
        #pragma unroll
        for (int s = 0; s < kSides; ++s) sums[s] = acc[j * kSides + s][i];
        finish(p, i, column_of(group, j), sums, ahead[j][i]);
      }
    }
  }
}
)cuda";

// Rows of b are runs, kLeading from one to the next: a block takes kAcross pieces of 16 bytes across and all of k, 512 / kAcross rows of b at a time.
inline constexpr char kFewRowsByRow[] = R"cuda(
struct Params { const T *a, *b; T* c; };
extern "C" __global__ void __launch_bounds__(512, kRows <= 2 ? 2 : 1) few_rows(Params p) {
  const T *const a = p.a, *const b = p.b;
  T* const c = p.c;
  constexpr int kHigh = 32 / kAcross, kSpan = kAcross * kPiece;  // rows of b in a warp; columns of a block
  __shared__ f32 parts[16][kRows][kSpan];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, high = lane / kAcross;
  const int column = blockIdx.x * kSpan + lane % kAcross * kPiece;
  constexpr int kBatch = kRows <= 2 ? 8 : 4;
  constexpr bool kWhole = kDepth % (16 * kHigh * kBatch) == 0;
  if (column < kColumns && lane % kAcross == 0) {
    #pragma unroll
    for (int n = 0; n < 16; ++n) {
      const int k = (n * 16 + warp) * kHigh + high;
      if (k < kDepth) announce(b + i64(k) * kLeading + column);
    }
  }
  begin();
  f32 acc[kRows][kPiece] = {};
  if (column < kColumns) {
    for (int start = warp * kHigh + high; start < kDepth; start += 16 * kHigh * kBatch) {
      Piece w[kBatch];
      f32 x[kBatch][kRows];
      #pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        const int k = start + n * 16 * kHigh;
        const bool inside = kWhole || k < kDepth;
        w[n] = inside ? stream_at(b + i64(k) * kLeading + column) : Piece{};
        #pragma unroll
        for (int i = 0; i < kRows; ++i) x[n][i] = inside ? as_f32(a[i * kRowA + k]) : 0.0f;
      }
      all_asked();
      #pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        #pragma unroll
        for (int i = 0; i < kRows; ++i) {
          #pragma unroll
          for (int u = 0; u < kPiece; ++u) acc[i][u] = fmaf(x[n][i], as_f32(w[n].v[u]), acc[i][u]);
        }
      }
    }
  }
  #pragma unroll
  for (int i = 0; i < kRows; ++i) {
    #pragma unroll
    for (int u = 0; u < kPiece; ++u) {
      #pragma unroll
      for (int o = kAcross; o < 32; o *= 2) acc[i][u] += __shfl_xor_sync(~0u, acc[i][u], o);
      if (high == 0) parts[warp][i][lane * kPiece + u] = acc[i][u];
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < kRows * kSpan; e += 512) {
    const int i = e / kSpan, at = e % kSpan;
    if (blockIdx.x * kSpan + at >= kColumns) continue;
    f32 sum = parts[0][i][at];
    #pragma unroll
    for (int w = 1; w < 16; ++w) sum += parts[w][i][at];
    put(c[i * kRowC + blockIdx.x * kSpan + at], sum);
  }
}
)cuda";

}  // namespace rlx::cuda
