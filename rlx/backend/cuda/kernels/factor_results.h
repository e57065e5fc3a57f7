// What the rotations of kernels/jacobi.h have found, as results: values in order, columns of unit length, their phases. Before it stands what stands before those.
#pragma once

namespace rlx::cuda {

// Values of each matrix in order, of equal ones the first first: values[n] of work, order[j] the place of value j. kGram:
// lengths of columns, descending; else the diagonal, ascending. `out` gets them at their own scale.
inline constexpr char kOrderKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(512)
order(const N* work, int rows, int count, int n, const i32* exponents, f64* values, i32* places, P* out) {
  const i64 matrix = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, exponent = exponents[matrix];
  work += matrix * count * rows, values += matrix * count, places += matrix * count, out += matrix * n;
  for (int i = kGram ? warp : int(threadIdx.x); i < n; i += kGram ? 16 : 512) {
    if (!kGram) {
      values[i] = real_part(work[i64(i) * rows + i]);
      continue;
    }
    f64 sum = 0;
    for (int r = lane; r < rows; r += 32) sum = plus_square(sum, work[i64(i) * rows + r]);
    sum = over_warp<Sum>(sum);
    if (lane == 0) values[i] = sqrt(sum);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 512) {
    const f64 mine = values[i];
    int rank = 0;
    for (int j = 0; j < n; ++j) {
      const f64 other = values[j];
      rank += (kGram ? other > mine : other < mine) || (other == mine && j < i);
    }
    places[rank] = i;
    narrowed(out[rank], exponent == kNotFinite ? not_a_number() : ldexp(mine, exponent));
  }
}
)cuda";

// Columns of unit length in order, and where a value is no more than rounding, any that completes them: the first unit
// vector that is far enough from the columns before it, less what they have of it, twice (Kahan, Parlett). A block for
// each matrix; spent[i] is the square of what the columns so far have of unit vector i.
inline constexpr char kDirectionsKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(512, 1)
directions(const N* work, int rows, int count, int n, const f64* values, const i32* places, N* units, f64* spent, N* dots) {
  __shared__ f64 parts[16];
  __shared__ int start;
  const i64 matrix = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  work += matrix * count * rows, units += matrix * count * rows;
  values += matrix * count, places += matrix * count, spent += matrix * rows, dots += matrix * count;
  const f64 least = values[places[0]] * 1e-15 * rows;
  int have = 0;  // values descend
  while (have < n && values[places[have]] > least) ++have;
  for (i64 e = threadIdx.x; e < i64(have) * rows; e += 512)
    units[e] = work[i64(places[e / rows]) * rows + e % rows] / values[places[e / rows]];
  __syncthreads();
  if (have == n) return;
  for (int i = threadIdx.x; i < rows; i += 512) {
    f64 sum = 0;
    for (int p = 0; p < have; ++p) sum = plus_square(sum, units[i64(p) * rows + i]);
    spent[i] = sum;
  }
  for (int j = have; j < n; ++j) {
    if (threadIdx.x == 0) start = rows - 1;
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += 512) {
      if (1 - spent[i] >= 0.25 / rows) { atomicMin(&start, i); break; }
    }
    __syncthreads();
    N* const v = units + i64(j) * rows;
    for (int i = threadIdx.x; i < rows; i += 512) v[i] = number(i == start ? 1.0 : 0.0);
    for (int pass = 0; pass < 2; ++pass) {
      __syncthreads();
      for (int p = warp; p < j; p += 16) {
        N dot = number(0);
        for (int i = lane; i < rows; i += 32) dot = plus_inner(dot, units[i64(p) * rows + i], v[i]);
        dot = over_lanes(dot);
        if (lane == 0) dots[p] = dot;
      }
      __syncthreads();
      for (int i = threadIdx.x; i < rows; i += 512) {
        N x = v[i];
        for (int p = 0; p < j; ++p) x = plus_product(x, -dots[p], units[i64(p) * rows + i]);
        v[i] = x;
      }
    }
    f64 sum = 0;
    for (int i = threadIdx.x; i < rows; i += 512) sum = plus_square(sum, v[i]);
    const f64 length = sqrt(over_block<Sum, 16>(sum, parts));
    for (int i = threadIdx.x; i < rows; i += 512) {
      const N x = v[i] / length;
      v[i] = x, spent[i] += plus_square(0, x);
    }
  }
}
)cuda";

// Columns of `left` (rows long) to y[rows, n], turned by a phase so that their entry of largest modulus is positive; of entries that
// rounding may have told apart the first decides. `right` (where there is one) turns with them and goes to z[n, rows], conjugated. A
// warp for each column; places say where column j is, or nothing: at j.
inline constexpr char kVectorsKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(128)
vectors(const N* left, i64 left_batch, int left_rows, int left_stride, const i32* left_places, const N* right, i64 right_batch, int right_rows, int right_stride, const i32* right_places,
        int n, int count, const i32* exponents, X* y, X* z, i64 total) {
  const i64 at = i64(blockIdx.x) * 4 + threadIdx.x / 32;
  if (at >= total) return;
  const i64 matrix = at / n;
  const int j = int(at % n), lane = threadIdx.x % 32;
  const bool none = exponents[matrix] == kNotFinite;
  const N* const from = left + matrix * left_batch + i64(left_places ? left_places[matrix * count + j] : j) * left_stride;
  f64 largest = 0;
  for (int i = lane; i < left_rows; i += 32) largest = fmax(largest, size_of(from[i]));
  largest = over_warp<Max>(largest);
  int first = left_rows;
  for (int i = lane; i < left_rows && first == left_rows; i += 32) {
    if (size_of(from[i]) * (1 + 1e-9) >= largest) first = i;
  }
  first = over_warp<Min>(first);
  const N phase = first < left_rows ? conjugate(phase_of(from[first])) : number(1);
  for (int i = lane; i < left_rows; i += 32)
    narrowed(y[(matrix * left_rows + i) * n + j], none ? no_number() : i == first ? number(size_of(from[i])) : phase * from[i]);
  if (right == nullptr) return;
  const N* const other = right + matrix * right_batch + i64(right_places ? right_places[matrix * count + j] : j) * right_stride;
  for (int i = lane; i < right_rows; i += 32) narrowed(z[(matrix * n + j) * right_rows + i], none ? no_number() : conjugate(phase * other[i]));
}
)cuda";

}  // namespace rlx::cuda
