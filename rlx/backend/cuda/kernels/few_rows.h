// Products of few rows, c [m, n] = a [m, k] b [k, n]: as fast as b can be read. Before them stand T, kRows (m), kDepth (k),
// kColumns (n), kLeading (from run to run of b). Sums have a fixed order.
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

// Columns of b are runs: kLanes threads for kEach of them.
inline constexpr char kFewRowsByColumn[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 4) few_rows(const T* a, const T* b, T* c, i64 a_row, i64 c_row) {
  const int lane = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  const int first = (blockIdx.x * (256 / kLanes) + team) * kEach;
  #pragma unroll
  for (int j = 0; j < kEach; ++j) {
    if (first + j < kColumns) {
      for (int k = lane * kLine; k < kDepth; k += kLanes * kLine) announce(b + i64(first + j) * kLeading + k);
    }
  }
  begin();
  f32 acc[kEach][kRows] = {};
  constexpr int kBatch = kEach == 1 ? 8 : 4;  // loads on their way at a time
  constexpr bool kWhole = kDepth % (kLanes * kPiece * kBatch) == 0;
  for (int start = lane * kPiece; start < kDepth; start += kLanes * kPiece * kBatch) {
    Piece w[kBatch][kEach];
    #pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      const int k = start + n * kLanes * kPiece;
      #pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const bool inside = kWhole || k < kDepth;
        const T* const at = b + i64(first + j < kColumns ? first + j : kColumns - 1) * kLeading + k;
        w[n][j] = inside ? stream_at(at) : Piece{};
      }
    }
    all_asked();
    #pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      const int k = start + n * kLanes * kPiece;
      if (!kWhole && k >= kDepth) break;
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const Piece x = piece_at(a + i * a_row + k);
        #pragma unroll
        for (int u = 0; u < kPiece; ++u) {
          #pragma unroll
          for (int j = 0; j < kEach; ++j) acc[j][i] = fmaf(as_f32(x.v[u]), as_f32(w[n][j].v[u]), acc[j][i]);
        }
      }
    }
  }
  #pragma unroll
  for (int j = 0; j < kEach; ++j) {
    #pragma unroll
    for (int i = 0; i < kRows; ++i) {
      #pragma unroll
      for (int o = kLanes / 2; o > 0; o /= 2) acc[j][i] += __shfl_xor_sync(~0u, acc[j][i], o);
      if (lane == 0 && first + j < kColumns) put(c[i * c_row + first + j], acc[j][i]);
    }
  }
}
)cuda";

// Rows of b are runs: a block takes kAcross pieces of 16 bytes across and all of k, 512 / kAcross rows of b at a time.
inline constexpr char kFewRowsByRow[] = R"cuda(
extern "C" __global__ void __launch_bounds__(512, kRows <= 2 ? 2 : 1) few_rows(const T* a, const T* b, T* c, i64 a_row, i64 c_row) {
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
        for (int i = 0; i < kRows; ++i) x[n][i] = inside ? as_f32(a[i * a_row + k]) : 0.0f;
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
    put(c[i * c_row + blockIdx.x * kSpan + at], sum);
  }
}
)cuda";

}  // namespace rlx::cuda
