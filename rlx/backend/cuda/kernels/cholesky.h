// a = L L^H for the Hermitian part of a, in shared memory, a block for each matrix. Numbers of kernels/matrix_numbers.h;
// before it also stand the types A and Y in memory and kThreads. `first` and `whole` place a part on the diagonal of a
// larger matrix: element 0 of the message's pair is the matrix, 1 how many rows its leading part without a factor has.
#pragma once

namespace rlx::cuda {

inline constexpr char kCholeskyKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
cholesky(const A* a, Y* y, int n, Lies lies, int first, int whole, u64* fault, u64 number) {
  constexpr int kWarps = kThreads / 32;
  extern __shared__ char memory[];
  W* const m = reinterpret_cast<W*>(memory);
  const i64 matrix = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, stride = n | 1;
  a += matrix * lies.batch, y += matrix * lies.batch;
  for (int i = warp; i < n; i += kWarps) {
    for (int c = lane; c < n; c += 32) m[i * stride + c] = widened(a[i * lies.row + c]);
  }
  __syncthreads();
  // Below the diagonal only: what is above stays as it was read.
  for (int i = warp; i < n; i += kWarps) {
    for (int c = lane; c <= i; c += 32) m[i * stride + c] = Real(0.5) * (m[i * stride + c] + conjugated(m[c * stride + i]));
  }
  __syncthreads();
  for (int j = 0; j < n; ++j) {
    const Real pivot = real_of(m[j * stride + j]);
    if (!(pivot > Real(0))) {  // also NaN
      if (threadIdx.x == 0) tell(fault, number, u64(matrix), u64(whole + 1), u64(first + j + 1));
      return;
    }
    const Real root = op_sqrt(pivot);
    for (int i = j + 1 + threadIdx.x; i < n; i += kThreads) m[i * stride + j] = m[i * stride + j] / root;
    __syncthreads();
    if (threadIdx.x == 0) m[j * stride + j] = of_real(root);
    for (int i = j + 1 + warp; i < n; i += kWarps) {
      const W factor = m[i * stride + j];
      for (int c = j + 1 + lane; c <= i; c += 32)
        m[i * stride + c] = minus_product(m[i * stride + c], factor, conjugated(m[c * stride + j]));
    }
    __syncthreads();
  }
  for (int i = warp; i < n; i += kWarps) {
    for (int c = lane; c < n; c += 32) narrowed(y[i * lies.row + c], c <= i ? m[i * stride + c] : W{});
  }
}
)cuda";

// Around the panels of a matrix that is too large for it: its Hermitian part, and the lower triangle at the end.
inline constexpr char kHermitianKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) hermitian(const X* a, W* work, int n, i64 count) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= count) return;
  const int c = int(e % n), i = int(e / n % n);
  work[e] = Real(0.5) * (widened(a[e]) + conjugated(widened(a[e / n / n * n * n + i64(c) * n + i])));
}
)cuda";

inline constexpr char kLowerKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) lower(const W* work, X* y, int n, i64 count) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e < count) narrowed(y[e], e % n <= e / n % n ? work[e] : W{});
}
)cuda";

}  // namespace rlx::cuda
