// Elimination with partial pivoting: of equal moduli the first is the pivot, and a NaN is one only where it stands on the
// diagonal, as in rlx/math/factor.cpp. Numbers of kernels/matrix_numbers.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kPivotText[] = R"cuda(
struct Candidate { Real size; int row; };
inline Candidate better(Candidate a, Candidate b) {
  return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a;
}
inline Candidate candidate(W x, int row, int diagonal) {
  const Real size = modulus(x);
  return {size == size ? size : row == diagonal ? Real(from_bits(0x7ff0000000000000ull)) : Real(-1), row};
}
inline Candidate best_of_warp(Candidate best) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    best = better(best, {__shfl_xor_sync(~0u, best.size, o), __shfl_xor_sync(~0u, best.row, o)});
  return best;
}

// The product of n pivots and sign, by one warp. It is m 2^e on its way, so that it neither overflows nor vanishes
// before its end; its logarithm is a sum of logarithms, its sign a product of pivot / |pivot|.
struct Determinant {
#ifdef COMPLEX
  f64 re, im, turn_re, turn_im, logarithm;
  i64 exponent;
  void times(f64 a, f64 b) { const f64 r = re * a - im * b; im = re * b + im * a, re = r; }
  void turn(f64 a, f64 b) { const f64 r = turn_re * a - turn_im * b; turn_im = turn_re * b + turn_im * a, turn_re = r; }
  void take(W pivot) {
    const f64 a = pivot.re, b = pivot.im, size = hypot(a, b);
    times(a, b), turn(a / size, b / size);
    logarithm += log(size);
    scale();
  }
  void scale() {
    const f64 size = fmax(fabs(re), fabs(im));
    if (!(size > 0) || size - size != 0) return;
    int e;
    frexp(size, &e);
    re = ldexp(re, -e), im = ldexp(im, -e), exponent += e;
  }
  void join(const Determinant& o) { times(o.re, o.im), turn(o.turn_re, o.turn_im), logarithm += o.logarithm, exponent += o.exponent, scale(); }
  static Determinant one() { return {1, 0, 1, 0, 0, 0}; }
  Determinant other(int o) const {
    return {__shfl_xor_sync(~0u, re, o), __shfl_xor_sync(~0u, im, o), __shfl_xor_sync(~0u, turn_re, o),
            __shfl_xor_sync(~0u, turn_im, o), __shfl_xor_sync(~0u, logarithm, o), __shfl_xor_sync(~0u, exponent, o)};
  }
  W value(f64 sign) const { const int e = clamped(); return {f32(sign * ldexp(re, e)), f32(sign * ldexp(im, e))}; }
  W phase(f64 sign) const { return {f32(sign * turn_re), f32(sign * turn_im)}; }
#else
  f64 re, turn_re, logarithm;
  i64 exponent;
  void take(W pivot) {
    const f64 a = f64(pivot), size = fabs(a);
    re *= a, turn_re *= a / size;
    logarithm += log(size);
    scale();
  }
  void scale() {
    if (!(re - re == 0)) return;
    int e;
    re = frexp(re, &e), exponent += e;
  }
  void join(const Determinant& o) { re *= o.re, turn_re *= o.turn_re, logarithm += o.logarithm, exponent += o.exponent, scale(); }
  static Determinant one() { return {1, 1, 0, 0}; }
  Determinant other(int o) const {
    return {__shfl_xor_sync(~0u, re, o), __shfl_xor_sync(~0u, turn_re, o), __shfl_xor_sync(~0u, logarithm, o), __shfl_xor_sync(~0u, exponent, o)};
  }
  W value(f64 sign) const { return W(sign * ldexp(re, clamped())); }
  W phase(f64 sign) const { return W(sign * turn_re); }
#endif
  int clamped() const { return int(exponent < -5000 ? -5000 : exponent > 5000 ? 5000 : exponent); }
};
inline Determinant determinant_of(const W* pivots, i64 stride, int n) {
  Determinant d = Determinant::one();
  for (int i = threadIdx.x % 32; i < n; i += 32) d.take(pivots[i * stride]);
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    // Both lanes of a pair join in the same order, so that all end with the same bits.
    const Determinant there = d.other(o);
    if (threadIdx.x % 32 & o) { const Determinant here = d; d = there; d.join(here); } else { d.join(there); }
  }
  return d;
}
typedef
#ifdef COMPLEX
    f32
#else
    X
#endif
    Logarithm;
// Of one matrix, by one lane: its determinant, or its phase and the logarithm of its modulus.
inline void put_determinant(const Determinant& d, f64 sign, bool singular, X* y, Logarithm* logarithm, i64 matrix) {
  if (logarithm == nullptr) return narrowed(y[matrix], singular ? W{} : d.value(sign));
  narrowed(y[matrix], singular ? W{} : d.phase(sign));
  const f64 l = singular ? -from_bits(0x7ff0000000000000ull) : d.logarithm;
#ifdef COMPLEX
  logarithm[matrix] = f32(l);
#else
  narrowed(logarithm[matrix], W(l));
#endif
}
)cuda";

// [a | b] of one matrix in shared memory, b the identity where there is none: eliminated by a block, a warp for each row.
// Before it stand kThreads, kDeterminant. x becomes a^-1 b, or y and logarithm the determinant.
inline constexpr char kEliminateKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
eliminate(const X* a, const X* b, X* x, Logarithm* logarithm, int n, int k, int stride, u64* fault, u64 number) {
  constexpr int kWarps = kThreads / 32;
  extern __shared__ char memory[];
  __shared__ int chosen;
  W* const m = reinterpret_cast<W*>(memory);
  const i64 matrix = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, width = n + k;
  for (int i = warp; i < n; i += kWarps) {
    for (int c = lane; c < width; c += 32)
      m[i * stride + c] = c < n ? widened(a[(matrix * n + i) * n + c])
                          : b   ? widened(b[(matrix * n + i) * k + c - n])
                                : of_real(Real(c - n == i));
  }
  f64 sign = 1;
  int none = -1;  // the first column without a pivot
  __syncthreads();
  for (int j = 0; j < n; ++j) {
    if (warp == 0) {
      Candidate best{Real(-1), n};
      for (int i = j + lane; i < n; i += 32) best = better(best, candidate(m[i * stride + j], i, j));
      best = best_of_warp(best);
      if (lane == 0) chosen = best.size == Real(0) ? -1 : best.row;
    }
    __syncthreads();
    const int pivot = chosen;
    if (pivot < 0) {
      none = j;
      break;
    }
    if (pivot != j) {
      sign = -sign;
      for (int c = j + threadIdx.x; c < width; c += kThreads) {
        const W kept = m[j * stride + c];
        m[j * stride + c] = m[pivot * stride + c], m[pivot * stride + c] = kept;
      }
    }
    __syncthreads();
    const W top = m[j * stride + j];
    for (int i = j + 1 + warp; i < n; i += kWarps) {
      const W factor = m[i * stride + j] / top;
      for (int c = j + 1 + lane; c < width; c += 32)
        m[i * stride + c] = minus_product(m[i * stride + c], factor, m[j * stride + c]);
    }
    __syncthreads();
  }
  if (kDeterminant) {
    if (warp != 0) return;
    const Determinant d = determinant_of(m, stride + 1, none < 0 ? n : 0);
    if (lane == 0) put_determinant(d, sign, none >= 0, x, logarithm, matrix);
    return;
  }
  if (none >= 0) {
    if (threadIdx.x == 0) tell(fault, number, u64(matrix), u64(n), u64(none));
    return;
  }
  for (int j = n - 1; j >= 0; --j) {
    const W pivot = m[j * stride + j];
    for (int c = n + threadIdx.x; c < width; c += kThreads) m[j * stride + c] = m[j * stride + c] / pivot;
    __syncthreads();
    for (int i = warp; i < j; i += kWarps) {
      const W factor = m[i * stride + j];
      for (int c = n + lane; c < width; c += 32)
        m[i * stride + c] = minus_product(m[i * stride + c], factor, m[j * stride + c]);
    }
    __syncthreads();
  }
  for (int i = warp; i < n; i += kWarps) {
    for (int c = lane; c < k; c += 32) narrowed(x[(matrix * n + i) * k + c], m[i * stride + n + c]);
  }
}
)cuda";

// Matrices that are too large for that: work[n, width] = [a | b] in memory, panel by panel.
inline constexpr char kJoinKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) join(const X* a, const X* b, W* work, int n, int k, i64 count) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= count) return;
  const int width = n + k, c = int(e % width), i = int(e / width % n);
  const i64 matrix = e / width / n;
  work[e] = c < n ? widened(a[(matrix * n + i) * n + c])
            : b   ? widened(b[(matrix * n + i) * k + c - n])
                  : of_real(Real(c - n == i));
}
)cuda";

// Columns first .. first + columns of the rows from `first` on, in shared memory or (kInMemory) in room[n, columns] of each matrix, a thread for every 1024th row. Factors
// stay below the diagonal; pivots[j] is the row that was exchanged with row j, zero the first column without a pivot.
inline constexpr char kPanelKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(1024)
panel(W* work, W* room, int n, int width, int first, int columns, i32* pivots, i32* zero) {
  extern __shared__ char memory[];
  __shared__ Real sizes[32];
  __shared__ int rows_of[32];
  const int m = n - first, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  W* const from = work + i64(blockIdx.x) * n * width + i64(first) * width + first;
  W* const p = kInMemory ? room + i64(blockIdx.x) * n * columns : reinterpret_cast<W*>(memory);  // column by column
  pivots += i64(blockIdx.x) * n;
  int singular = first == 0 ? -1 : zero[blockIdx.x];
  for (i64 e = threadIdx.x; e < i64(m) * columns; e += 1024)
    p[e % columns * m + e / columns] = from[i64(e / columns) * width + e % columns];
  __syncthreads();
  for (int j = 0; j < columns; ++j) {
    Candidate best{Real(-1), m};
    for (int i = j + threadIdx.x; i < m; i += 1024) best = better(best, candidate(p[j * m + i], i, j));
    best = best_of_warp(best);
    if (lane == 0) sizes[warp] = best.size, rows_of[warp] = best.row;
    __syncthreads();
    best = best_of_warp({sizes[lane], rows_of[lane]});
    const bool none = best.size == Real(0);
    const int pivot = none ? j : best.row;
    if (none && singular < 0) singular = first + j;
    if (threadIdx.x == 0) pivots[first + j] = first + pivot;
    if (threadIdx.x < columns && pivot != j) {
      const W kept = p[threadIdx.x * m + j];
      p[threadIdx.x * m + j] = p[threadIdx.x * m + pivot], p[threadIdx.x * m + pivot] = kept;
    }
    __syncthreads();
    const W top = p[j * m + j];
    for (int i = j + 1 + threadIdx.x; i < m && !none; i += 1024) {
      const W factor = p[j * m + i] / top;
      p[j * m + i] = factor;
      for (int c = j + 1; c < columns; ++c) p[c * m + i] = minus_product(p[c * m + i], factor, p[c * m + j]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) zero[blockIdx.x] = singular;
  for (i64 e = threadIdx.x; e < i64(m) * columns; e += 1024)
    from[i64(e / columns) * width + e % columns] = p[e % columns * m + e / columns];
}
)cuda";

// The exchanges of a panel in the columns behind it, a thread for each.
inline constexpr char kExchangeKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(128)
exchange(W* work, int n, int width, int first, int columns, const i32* pivots, i64 count) {
  const i64 e = i64(blockIdx.x) * 128 + threadIdx.x;
  if (e >= count) return;
  const int rest = width - first - columns;
  const i64 matrix = e / rest;
  W* const column = work + matrix * n * width + first + columns + e % rest;
  for (int j = first; j < first + columns; ++j) {
    const int pivot = pivots[matrix * n + j];
    if (pivot == j) continue;
    const W kept = column[i64(j) * width];
    column[i64(j) * width] = column[i64(pivot) * width], column[i64(pivot) * width] = kept;
  }
}
)cuda";

// What the pivots say, a warp for each matrix.
inline constexpr char kPivotsKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(32)
determinant(const W* work, const i32* pivots, const i32* zero, X* y, Logarithm* logarithm, int n) {
  const i64 matrix = blockIdx.x;
  int odd = 0;
  for (int i = threadIdx.x; i < n; i += 32) odd ^= int(pivots[matrix * n + i] != i);
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) odd ^= __shfl_xor_sync(~0u, odd, o);
  const bool singular = zero[matrix] >= 0;
  const Determinant d = determinant_of(work + matrix * n * n, n + 1, singular ? 0 : n);
  if (threadIdx.x == 0) put_determinant(d, odd ? -1.0 : 1.0, singular, y, logarithm, matrix);
}
)cuda";

// A matrix without a pivot is told of, a thread for each.
inline constexpr char kSingularKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(32) singular(const i32* zero, int n, int batch, u64* fault, u64 number) {
  const int matrix = blockIdx.x * 32 + threadIdx.x;
  if (matrix < batch && zero[matrix] >= 0) tell(fault, number, u64(matrix), u64(n), u64(zero[matrix]));
}
)cuda";

}  // namespace rlx::cuda
