// Matrices as columns of numbers N whose largest part is between 1 and 2, so that squares of elements are numbers; the power of
// two is kept. Before the kernels stands kernels/factor_numbers.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kScaledText[] = R"cuda(
constexpr int kNotFinite = -(1 << 30);  // the power of two of a matrix with NaN or infinity: its factors are NaN
inline f64 infinity() { return from_bits(0x7ff0000000000000ull); }
inline f64 not_a_number() { return from_bits(0x7ff8000000000000ull); }
)cuda";

// The power of two of the largest element of each matrix, or kNotFinite; a block of kScaleThreads for each.
inline constexpr char kScaleKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kScaleThreads) scale(const X* a, i64 size, i32* exponents) {
  __shared__ f64 parts[32];
  a += i64(blockIdx.x) * size;
  f64 largest = 0;
  #pragma unroll 8
  for (i64 e = threadIdx.x; e < size; e += kScaleThreads) largest = fmax(largest, largest_part(a[e]));
  largest = over_block<Max, kScaleThreads / 32>(largest, parts);
  int exponent;
  frexp(largest, &exponent);
  if (threadIdx.x == 0) exponents[blockIdx.x] = largest == infinity() ? kNotFinite : largest > 0 ? exponent - 1 : 0;
}
)cuda";

// work[.., count, rows] from the elements of a[height, width], divided by the power of two; zero outside. kSymmetric: half
// of it and half of its mirror image, conjugated; kConjugate: all are. Where they are asked for also the columns of the identity, and no rotation is told of.
inline constexpr char kColumnsKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
columns(const X* a, Lies lies, int height, int width, int rows, int count, const i32* exponents, N* work, N* vectors, i32* turned, int sweeps, i64 total) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const int longer = rows > count ? rows : count, r = int(e % longer), c = int(e / longer % count);
  const i64 matrix = e / longer / count;
  const int exponent = exponents[matrix];
  if (r < rows) {
    N x = number(0);
    if (exponent != kNotFinite && r < height && c < width) {
      x = number_of(a[matrix * lies.batch + r * lies.row + c * lies.column]);
      if (kSymmetric) x = 0.5 * x + 0.5 * conjugate(number_of(a[matrix * lies.batch + c * lies.row + r * lies.column]));
      if (kConjugate) x = conjugate(x);
      x = with_power(x, -exponent);
    }
    work[(matrix * count + c) * rows + r] = x;
  }
  if (vectors == nullptr) return;
  if (r < count) vectors[(matrix * count + c) * count + r] = number(r == c ? 1.0 : 0.0);
  for (int i = 0; i < sweeps && r == 0 && c == 0; ++i) turned[matrix * sweeps + i] = 0;
}
)cuda";

}  // namespace rlx::cuda
