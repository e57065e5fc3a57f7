// QR by Householder reflections, in numbers N (kernels/factor_numbers.h): x -> x - 2 v (v^H x) for unit normals v. Matrices are column by column, `rows` long,
// at the scale of kernels/scaled_columns.h. Before it stand kThreads, kShared (columns go through shared memory)
// and kMostNormals, of a panel.
#pragma once

namespace rlx::cuda {

inline constexpr char kReflectionsText[] = R"cuda(
// One column less its reflection, from row `from` on, by a warp. A lane keeps to its rows, whatever `from` is.
inline void reflect(N* column, const N* normal, int from, int rows) {
  const int lane = threadIdx.x % 32;
  const int mine = from / 32 * 32 + lane, begin = mine < from ? mine + 32 : mine;
  N dot = number(0);
  for (int i = begin; i < rows; i += 32) dot = plus_inner(dot, normal[i], column[i]);
  dot = 2.0 * over_lanes(dot);
  for (int i = begin; i < rows; i += 32) column[i] = plus_product(column[i], -dot, normal[i]);
}
)cuda";

// Columns first .. first + columns of one matrix by one block: the normals of their reflections, and R above and on their
// diagonal. What lies above row `first` is R already.
inline constexpr char kReflectKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
panel(N* x, N* normals, int rows, int count, int normal_count, int first, int columns) {
  constexpr int kWarps = kThreads / 32;
  extern __shared__ N memory[];
  __shared__ f64 parts[32];
  __shared__ N diagonal[kShared ? kMostNormals : 1];
  const i64 matrix = blockIdx.x;
  const int warp = threadIdx.x / 32, height = rows - first;
  x += (matrix * count + first) * rows + first;
  normals += (matrix * normal_count + first) * rows + first;
  N* const p = kShared ? memory : x;
  const i64 stride = kShared ? height : rows;
  if (kShared) {
    for (int e = threadIdx.x; e < height * columns; e += kThreads) p[e] = x[i64(e / height) * rows + e % height];
  }
  const int last = normal_count - first < columns ? normal_count - first : columns;
  for (int j = 0; j < last; ++j) {
    __syncthreads();
    N* const column = p + j * stride;
    N* const normal = normals + i64(j) * rows;
    f64 sum = 0;
    for (int i = j + 1 + threadIdx.x; i < height; i += kThreads) sum = plus_square(sum, column[i]);
    sum = over_block<Sum, kWarps>(sum, parts);
    const N head = column[j], phase = phase_of(head);
    const f64 norm = sqrt(plus_square(sum, head));
    const N tip = head + norm * phase;
    const f64 length = sqrt(plus_square(sum, tip));
    __syncthreads();  // all have read the head
    const N kept = length > 0 ? -norm * phase : head;
    for (int i = j + threadIdx.x; i < height; i += kThreads) {
      const N v = length > 0 ? (i == j ? tip : column[i]) / length : number(0);
      normal[i] = v;
      if (kShared) column[i] = v;  // from where the columns behind it read it
      if (i == j) (kShared ? diagonal[j] : column[i]) = kept;
    }
    __syncthreads();
    for (int c = j + 1 + warp; c < columns; c += kWarps) reflect(p + c * stride, kShared ? column : normal, j, height);
  }
  __syncthreads();
  if (kShared) {
    for (int e = threadIdx.x; e < height * columns; e += kThreads) {
      const int c = e / height, i = e % height;
      x[i64(c) * rows + i] = i == c && c < last ? diagonal[c] : p[e];
    }
  }
}
)cuda";

// The reflections of a panel on the columns behind it, a warp for each column.
inline constexpr char kApplyKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
apply(N* x, const N* normals, int rows, int count, int normal_count, int first, int columns, int rest, i64 total) {
  extern __shared__ N memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, height = rows - first;
  const i64 at = i64(blockIdx.x) * (kThreads / 32) + warp;
  if (at >= total) return;
  const i64 matrix = at / rest;
  N* const from = x + (matrix * count + count - rest + at % rest) * rows + first;
  N* const column = kShared ? memory + warp * height : from;
  normals += (matrix * normal_count + first) * rows + first;
  if (kShared) {
    for (int i = lane; i < height; i += 32) column[i] = from[i];
  }
  for (int j = 0; j < columns; ++j) reflect(column, normals + i64(j) * rows, j, height);
  if (kShared) {
    for (int i = lane; i < height; i += 32) from[i] = column[i];
  }
}
)cuda";

// Columns of Q: all reflections on unit vectors, the last first, a warp for each. The phase of each diagonal element of R
// goes to its column. work is room for the columns where they do not fit shared memory.
inline constexpr char kFormKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
form(const N* x, const N* normals, N* work, int rows, int count, int normal_count, const i32* exponents, X* q, i64 total) {
  extern __shared__ N memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 at = i64(blockIdx.x) * (kThreads / 32) + warp;
  if (at >= total) return;
  const i64 matrix = at / normal_count;
  const int j = int(at % normal_count);
  N* const column = kShared ? memory + warp * rows : work + at * rows;
  for (int i = lane; i < rows; i += 32) column[i] = number(i == j ? 1.0 : 0.0);
  // Those behind j have nothing of this unit vector.
  for (int n = j; n >= 0; --n) reflect(column, normals + (matrix * normal_count + n) * rows, n, rows);
  const bool none = exponents[matrix] == kNotFinite;
  const N phase = phase_of(x[(matrix * count + j) * rows + j]);
  for (int i = lane; i < rows; i += 32)
    narrowed(q[(matrix * rows + i) * normal_count + j], none ? no_number() : phase * column[i]);
}
)cuda";

inline constexpr char kTriangleKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
triangle(const N* x, int rows, int count, int normal_count, const i32* exponents, X* r, i64 total) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= total) return;
  const int c = int(e % count), i = int(e / count % normal_count);
  const i64 matrix = e / count / normal_count;
  const int exponent = exponents[matrix];
  const N* const from = x + matrix * count * rows;
  const N turned = conjugate(phase_of(from[i64(i) * rows + i])) * from[i64(c) * rows + i];
  narrowed(r[e], exponent == kNotFinite ? no_number() : c < i ? number(0) : with_power(c == i ? number(size_of(turned)) : turned, exponent));
}
)cuda";

}  // namespace rlx::cuda
