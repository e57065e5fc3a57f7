// A product of two matrices of any strides in tiles of 64 x 64: for types and layouts that no library takes.
// Before it stand the types A, B, C in memory, Acc of the sums, and read_a, read_b, write_c, mad.
#pragma once

namespace rlx::cuda {

inline constexpr char kProductKernel[] = R"cuda(
struct Strides { i64 row, column, batch; };

extern "C" __global__ void __launch_bounds__(256)
product(const A* a, const B* b, C* c, int m, int n, int k, Strides as, Strides bs, Strides cs) {
  constexpr int kTile = 64, kDepth = 16;
  __shared__ Acc ta[kDepth][kTile + 1], tb[kDepth][kTile + 1];
  a += i64(blockIdx.z) * as.batch;
  b += i64(blockIdx.z) * bs.batch;
  c += i64(blockIdx.z) * cs.batch;
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  Acc sum[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += kDepth) {
    for (int e = threadIdx.x; e < kTile * kDepth; e += 256) {
      // Neighbouring threads read neighbours in memory, whichever way the matrix lies.
      const bool a_runs = as.column == 1, b_runs = bs.column == 1;
      const int ad = a_runs ? e % kDepth : e / kTile, ar = a_runs ? e / kDepth : e % kTile;
      const int bd = b_runs ? e / kTile : e % kDepth, bc = b_runs ? e % kTile : e / kDepth;
      ta[ad][ar] = row0 + ar < m && k0 + ad < k ? read_a(a[(row0 + ar) * as.row + (k0 + ad) * as.column]) : Acc{};
      tb[bd][bc] = column0 + bc < n && k0 + bd < k ? read_b(b[(k0 + bd) * bs.row + (column0 + bc) * bs.column]) : Acc{};
    }
    __syncthreads();
    #pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      Acc x[4], y[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = ta[d][ty * 4 + i], y[i] = tb[d][tx * 4 + i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = mad(sum[i][j], x[i], y[j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + ty * 4 + i, column = column0 + tx * 4 + j;
      if (row < m && column < n) write_c(c[row * cs.row + column * cs.column], sum[i][j]);
    }
  }
}
)cuda";

}  // namespace rlx::cuda
