// Triangular systems L X = B, forward, for any strides: other triangles and the transposes of all are walked with other
// strides. A block takes 32 columns of B through all rows, 32 at a time: what the rows before give is a product of tiles,
// then a warp solves for four columns with a lane for each row. Numbers of kernels/matrix_numbers.h; before it also stand
// the types A and B in memory, kUnit (ones on the diagonal), kConjugate (of L) and kResult (x is also written to y).
#pragma once

namespace rlx::cuda {

inline constexpr char kSubstituteKernel[] = R"cuda(
constexpr int kTile = 32;

// Tile (row0, column0) of a matrix; neighbouring threads read neighbours in memory, whichever way it lies. Zero outside.
template <class T>
void fetch(W (*tile)[kTile + 1], const T* x, const Lies& lies, int row0, int column0, int rows, int columns) {
  const bool runs = lies.column == 1 || lies.column == -1;
  for (int e = threadIdx.x; e < kTile * kTile; e += 256) {
    const int r = runs ? e / kTile : e % kTile, c = runs ? e % kTile : e / kTile;
    const int row = row0 + r, column = column0 + c;
    tile[r][c] = row < rows && column < columns ? widened(x[row * lies.row + column * lies.column]) : W{};
  }
}

extern "C" __global__ void __launch_bounds__(256)
substitute(const A* a, const B* b, W* x, X* y, int n, int k, Lies al, Lies bl, Lies xl, Lies yl, int backwards, u64* fault, u64 number) {
  __shared__ W left[kTile][kTile + 1], right[kTile][kTile + 1];
  const int tiles = (k + kTile - 1) / kTile, column0 = int(blockIdx.x % tiles) * kTile;
  const i64 matrix = blockIdx.x / tiles;
  a += matrix * al.batch, b += matrix * bl.batch, x += matrix * xl.batch;
  if (kResult) y += matrix * yl.batch;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int row0 = 0; row0 < n; row0 += kTile) {
    const int rows = n - row0 < kTile ? n - row0 : kTile;
    fetch(right, b, bl, row0, column0, n, k);
    __syncthreads();
    W sum[4];
    #pragma unroll
    for (int r = 0; r < 4; ++r) sum[r] = right[warp * 4 + r][lane];
    __syncthreads();
    for (int p0 = 0; p0 < row0; p0 += kTile) {
      fetch(left, a, al, row0, p0, n, n);
      fetch(right, x, xl, p0, column0, n, k);
      __syncthreads();
      #pragma unroll 8
      for (int d = 0; d < kTile; ++d) {
        const W v = right[d][lane];
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
          const W factor = left[warp * 4 + r][d];
          sum[r] = minus_product(sum[r], kConjugate ? conjugated(factor) : factor, v);
        }
      }
      __syncthreads();
    }
    fetch(left, a, al, row0, row0, n, n);
    #pragma unroll
    for (int r = 0; r < 4; ++r) right[warp * 4 + r][lane] = sum[r];
    __syncthreads();
    // 0: a zero was told by whoever made the triangle.
    if (!kUnit && number != 0 && column0 == 0 && warp == 0 && lane < rows && modulus(left[lane][lane]) == Real(0))
      tell(fault, number, u64(matrix), u64(n), u64(backwards ? n - 1 - row0 - lane : row0 + lane));
    W v[4];
    #pragma unroll
    for (int c = 0; c < 4; ++c) v[c] = right[lane][warp * 4 + c];
    for (int p = 0; p < rows; ++p) {
      const W factor = kConjugate ? conjugated(left[lane][p]) : left[lane][p];
      #pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (!kUnit && lane == p) v[c] = v[c] / factor;
        const W found = from_lane(v[c], p);
        if (lane > p) v[c] = minus_product(v[c], factor, found);
      }
    }
    __syncthreads();
    #pragma unroll
    for (int c = 0; c < 4; ++c) right[lane][warp * 4 + c] = v[c];
    __syncthreads();
    const bool runs = xl.column == 1 || xl.column == -1;
    for (int e = threadIdx.x; e < kTile * kTile; e += 256) {
      const int r = runs ? e / kTile : e % kTile, c = runs ? e % kTile : e / kTile;
      const i64 row = row0 + r, column = column0 + c;
      if (row >= n || column >= k) continue;
      x[row * xl.row + column * xl.column] = right[r][c];
      if (kResult) narrowed(y[row * yl.row + column * yl.column], right[r][c]);
    }
    __syncthreads();
  }
}
)cuda";

}  // namespace rlx::cuda
