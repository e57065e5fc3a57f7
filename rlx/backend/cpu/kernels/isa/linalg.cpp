// Plan: small dense systems in L1 and L2, one matrix at a time, vectors along the rows of row-major storage.
//
// A matrix is copied into rows padded to whole vectors, with ones on the padded diagonal: padding then takes
// part in the elimination without changing it, and no loop has a tail. Blocks are as many columns as a vector
// has lanes. LU, for each block of columns:
//   1. the block is transposed into a panel [lanes][rows], where the search for a pivot and the elimination
//      inside the block run along contiguous columns;
//   2. its exchanges of rows are applied to the columns right of it, right sides included;
//   3. the rows of U right of the block: substitution with the block's unit triangle, one vector of columns
//      at a time, all its rows in registers;
//   4. what remains: C -= L U, tiles of 6 rows x 4 vectors (2 with 16 registers): 24 sums + 4 + 1 registers.
// So the right sides are eliminated with the matrix and only the substitution with U is left. Cholesky does
// the same on the upper triangle without 1 and 2, its panel being the rows themselves.
// Bound: multiply-adds, n^3 / 3 (LU) and n^3 / 6 (Cholesky); for n = 64 the panels take as long again, since
// each of their columns waits for the search before it.
#include "rlx/backend/cpu/kernels/linalg.h"

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
struct Of;
template <>
struct Of<float> {
  using V = F32;
  using Mask = I32;
  static constexpr float smallest = 0x1p-125f;  // its inverse is finite
};
template <>
struct Of<double> {
  using V = F64;
  using Mask = I64;
  static constexpr double smallest = 0x1p-1021;
};
template <class T>
using Vec = typename Of<T>::V;
template <class T>
inline constexpr int kWidth = kVectorBytes / int(sizeof(T));

template <class T>
RLX_INLINE auto lane_numbers() {
  typename Of<T>::Mask v;
  for (int i = 0; i < kWidth<T>; ++i) v[i] = i;
  return v;
}

/// Whether 1 / d is finite and not rounded to a subnormal.
template <class T>
RLX_INLINE bool invertible(T d) {
  return d > Of<T>::smallest || d < -Of<T>::smallest;
}

RLX_INLINE int64_t padded(int64_t n, int width) { return (n + width - 1) / width * width; }

/// to[j][i] = from[i][j] for a square of vectors.
RLX_INLINE void transpose_block(const float* from, int64_t stride, float* to, int64_t to_stride) {
  F32 v[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) v[i] = load(from + i * stride);
  transpose(v);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store(to + i * to_stride, v[i]);
}
RLX_INLINE void transpose_block(const double* from, int64_t stride, double* to, int64_t to_stride) {
  for (int i = 0; i < kLanes64; ++i) {
    for (int j = 0; j < kLanes64; ++j) to[j * to_stride + i] = from[i * stride + j];
  }
}

/// C -= L R: rows x columns vectors of C; l(i, p) at l[i * row + p * column].
template <class T, int rows, int columns>
RLX_INLINE void product_tile(int64_t depth, const T* l, int64_t row, int64_t column, const T* r,
                             int64_t stride, T* c, int64_t c_stride) {
  constexpr int w = kWidth<T>;
  Vec<T> sum[rows][columns] = {};
  for (int64_t p = 0; p < depth; ++p, l += column, r += stride) {
    Vec<T> right[columns];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) right[j] = load(r + j * w);
#pragma GCC unroll 6
    for (int i = 0; i < rows; ++i) {
      const Vec<T> left = set1(l[i * row]);
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
      T* to = c + i * c_stride + j * w;
      store(to, load(to) - sum[i][j]);
    }
  }
}

template <class T, int columns>
RLX_INLINE void product_strip(int64_t rows, int64_t depth, const T* l, int64_t row, int64_t column,
                              const T* r, int64_t stride, T* c, int64_t c_stride) {
  int64_t i = 0;
  for (; i + 6 <= rows; i += 6)
    product_tile<T, 6, columns>(depth, l + i * row, row, column, r, stride, c + i * c_stride, c_stride);
  if (i + 4 <= rows) {
    product_tile<T, 4, columns>(depth, l + i * row, row, column, r, stride, c + i * c_stride, c_stride);
    i += 4;
  }
  for (; i < rows; ++i)
    product_tile<T, 1, columns>(depth, l + i * row, row, column, r, stride, c + i * c_stride, c_stride);
}

/// The same for any size; `vectors` columns of vectors.
template <class T>
void subtract_product(int64_t rows, int64_t vectors, int64_t depth, const T* l, int64_t row, int64_t column,
                      const T* r, int64_t stride, T* c, int64_t c_stride) {
  constexpr int wide = kRegisters == 32 ? 4 : 2, w = kWidth<T>;
  int64_t j = 0;
  for (; j + wide <= vectors; j += wide)
    product_strip<T, wide>(rows, depth, l, row, column, r + j * w, stride, c + j * w, c_stride);
  if (j + 2 <= vectors) {
    product_strip<T, 2>(rows, depth, l, row, column, r + j * w, stride, c + j * w, c_stride);
    j += 2;
  }
  if (j < vectors) product_strip<T, 1>(rows, depth, l, row, column, r + j * w, stride, c + j * w, c_stride);
}

/// X <- L^-1 X for a block of as many rows as lanes, l as above; `inverse` of the diagonal, null for ones.
template <class T>
void solve_block(int64_t vectors, const T* l, int64_t row, int64_t column, const T* inverse, T* x,
                 int64_t stride) {
  constexpr int w = kWidth<T>;
  for (int64_t j = 0; j < vectors; ++j, x += w) {
    Vec<T> v[w];
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) v[i] = load(x + i * stride);
#pragma GCC unroll 16
    for (int p = 0; p < w; ++p) {
      if (inverse != nullptr) v[p] = v[p] * set1(inverse[p]);
#pragma GCC unroll 16
      for (int i = p + 1; i < w; ++i) v[i] = fnma(v[p], set1(l[i * row + p * column]), v[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) store(x + i * stride, v[i]);
  }
}

/// The same for fewer rows, or a diagonal whose inverse overflows.
template <class T>
void solve_rest(int64_t rows, int64_t vectors, const T* l, int64_t row, int64_t column, bool unit, T* x,
                int64_t stride) {
  constexpr int w = kWidth<T>;
  for (int64_t j = 0; j < vectors; ++j, x += w) {
    for (int64_t i = 0; i < rows; ++i) {
      Vec<T> v = load(x + i * stride);
      for (int64_t p = 0; p < i; ++p) v = fnma(load(x + p * stride), set1(l[i * row + p * column]), v);
      store(x + i * stride, unit ? v : v / set1(l[i * (row + column)]));
    }
  }
}

/// Rows of b, `stride` apart, into rows of whole vectors padded with zeros; and back.
template <class T>
RLX_INLINE void copy_in(int64_t rows, int64_t n, const T* from, int64_t from_stride, T* to,
                        int64_t to_stride) {
  constexpr int w = kWidth<T>;
  for (int64_t i = 0; i < rows; ++i, from += from_stride, to += to_stride) {
    int64_t j = 0;
    for (; j + w <= n; j += w) store(to + j, load(from + j));
    if (j < n) store(to + j, load_n(from + j, int(n - j)));
  }
}
template <class T>
RLX_INLINE void copy_out(int64_t rows, int64_t n, const T* from, int64_t from_stride, T* to,
                         int64_t to_stride) {
  constexpr int w = kWidth<T>;
  for (int64_t i = 0; i < rows; ++i, from += from_stride, to += to_stride) {
    int64_t j = 0;
    for (; j + w <= n; j += w) store(to + j, load(from + j));
    if (j < n) store_n(to + j, load(from + j), int(n - j));
  }
}

/// C -= L x for as many rows as lanes and one column, x and C being the first numbers of rows of one vector: rows
/// go to lanes, where a vector for each would wait for its sum. Rounds as product_tile. One of the strides is 1
/// or -1; depth is a multiple of the lanes.
template <class T>
[[gnu::noinline]] void subtract_column(int64_t depth, const T* l, int64_t row, int64_t column, const T* x,
                                       T* c, int64_t stride) {
  constexpr int w = kWidth<T>;
  const bool along = column == 1 || column == -1;  // rows of L are contiguous: squares of it are turned
  const bool turned = (along ? column : row) < 0;
  Vec<T> sum = {};
  for (int64_t p = 0; p < depth; p += w, l += w * column) {
    Vec<T> v[w];
    const T* from = turned ? l - (w - 1) : l;
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i) v[i] = load(from + i * (along ? row : column));
    if (along) transpose(v);
#pragma GCC unroll 16
    for (int i = 0; i < w; ++i)
      sum = fma(along && turned ? v[w - 1 - i] : v[i], set1(x[(p + i) * stride]), sum);
  }
  T sums[w];
  store(sums, sum);
  for (int i = 0; i < w; ++i) {
    T* to = c + i * stride;
    store(to, load(to) - set1(sums[turned && !along ? w - 1 - i : i]));
  }
}

/// Substitution in place on n rows of vectors, of which `k` numbers count; returns the step with a zero on the
/// diagonal, or -1.
template <class T>
int64_t substitute_rows(int64_t n, int64_t k, const T* l, int64_t row, int64_t column, bool unit, T* x,
                        int64_t stride) {
  constexpr int w = kWidth<T>;
  const int64_t vectors = padded(k, w) / w;
  for (int64_t at = 0; at < n; at += w) {
    const int64_t rows = n - at < w ? n - at : w;
    const T* diagonal = l + at * (row + column);
    T inverse[w];
    bool whole = rows == w;
    for (int64_t i = 0; i < rows && !unit; ++i) {
      const T d = diagonal[i * (row + column)];
      if (d == T(0)) return at + i;
      inverse[i] = T(1) / d;
      whole &= invertible(d);
    }
    if (at > 0 && k == 1 && rows == w) {
      subtract_column(at, l + at * row, row, column, x, x + at * stride, stride);
    } else if (at > 0) {
      subtract_product(rows, vectors, at, l + at * row, row, column, x, stride, x + at * stride, stride);
    }
    if (whole) {
      solve_block(vectors, diagonal, row, column, unit ? nullptr : inverse, x + at * stride, stride);
    } else {
      solve_rest(rows, vectors, diagonal, row, column, unit, x + at * stride, stride);
    }
  }
  return -1;
}

template <class T>
int64_t substitute(int64_t n, int64_t k, const T* l, int64_t row, int64_t column, bool unit, const T* b,
                   int64_t stride, T* x, int64_t x_stride, T* work) {
  constexpr int w = kWidth<T>;
  const int64_t wide = padded(k, w);
  copy_in(n, k, b, stride, work, wide);
  const int64_t zero = substitute_rows(n, k, l, row, column, unit, work, wide);
  copy_out(n, k, work, wide, x, x_stride);
  return zero;
}

RLX_INLINE float largest(F32 v) { return reduce_max(v); }
RLX_INLINE double largest(F64 v) {
  double s[kLanes64];
  store(s, v);
  for (int half = kLanes64 / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] = s[i] > s[i + half] ? s[i] : s[i + half];
  }
  return s[0];
}

/// The first active row of a column that `test` accepts (a mask for a vector), or -1. The masks of 64 rows
/// are joined first: a branch for each vector would be mispredicted.
template <class T, class Test>
RLX_INLINE int64_t first_active(const T* column, const typename Of<T>::Mask* active, int64_t m, Test test) {
  constexpr int w = kWidth<T>;
  for (int64_t at = 0; at < m; at += 64) {
    uint64_t bits = 0;
    for (int64_t i = at; i < m && i < at + 64; i += w)
      bits |= uint64_t(mask_bits((typename Of<T>::Mask)(test(load(column + i)) & active[i / w]))) << (i - at);
    if (bits != 0) return at + __builtin_ctzll(bits);
  }
  return -1;
}

/// LU of a panel [w][m] of columns, in place: L below the diagonal of its first w rows, U on and above.
/// pivots[j] is the row exchanged with row j. Returns the column without a pivot, or -1.
///
/// Rows stay where they are until the end: exchanging single elements would make each following load of a
/// vector wait for the stores. A row that was a pivot leaves `active` ([m / w] masks). The next column is
/// eliminated before the others, so that its maximum is folded while they are.
template <class T>
int64_t factor_panel(T* panel, int64_t m, typename Of<T>::Mask* active, int64_t* pivots) {
  constexpr int w = kWidth<T>;
  using V = Vec<T>;
  using Mask = typename Of<T>::Mask;
  using Lane = decltype(Mask{}[0] + 0);
  const Mask lane = lane_numbers<T>();
  int64_t rows[w];
  V best = {};
  for (int64_t i = 0; i < m; i += w) {
    active[i / w] = lane >= 0;
    best = max(abs(load(panel + i)), best);  // a NaN is passed over
  }
  T top = largest(best);
  for (int j = 0; j < w; ++j) {
    T* column = panel + j * m;
    const int64_t pivot = top > T(0) ? first_active(column, active, m, [top](V v) { return abs(v) == top; })
                                     : first_active(column, active, m, [](V v) { return v != v; });
    if (pivot < 0) return j;
    rows[j] = pivot;
    const T value = column[pivot];
    const bool safe = invertible(value);
    const V divisor = set1(value), inverse = set1(T(1) / value);
    T factors[w];
    for (int k = j + 1; k < w; ++k) factors[k] = panel[k * m + pivot];
    T* next = j + 1 < w ? column + m : column;  // the last column has none: nothing is taken from itself
    const V first = set1(j + 1 < w ? factors[j + 1] : T(0));
    best = V{};
    for (int64_t i = 0; i < m; i += w) {
      const Mask left = active[i / w] & (lane != Lane(pivot - i));
      active[i / w] = left;
      const V whole = load(column + i), l = safe ? whole * inverse : whole / divisor;
      store(column + i, left ? l : whole);
      const V changed = fnma((V)((Mask)l & left), first, load(next + i));
      store(next + i, changed);
      best = max((V)((Mask)abs(changed) & left), best);
    }
    top = largest(best);
    for (int64_t i = 0; i < m; i += w) {
      const V l = (V)((Mask)load(column + i) & active[i / w]);
      for (int k = j + 2; k < w; ++k) {
        T* at = panel + k * m + i;
        store(at, fnma(l, set1(factors[k]), load(at)));
      }
    }
  }
  for (int j = 0; j < w; ++j) {  // where the pivot of step j has been moved by the exchanges before it
    int64_t place = rows[j];
    for (int t = 0; t < j; ++t) place = place == t ? pivots[t] : place == pivots[t] ? t : place;
    pivots[j] = place;
  }
  for (int k = 0; k < w; ++k) {
    T* column = panel + k * m;
    for (int j = 0; j < w; ++j) {
      const T t = column[j];
      column[j] = column[pivots[j]];
      column[pivots[j]] = t;
    }
  }
  return -1;
}

template <class T>
int64_t lu_solve(int64_t n, int64_t k, const T* a, const T* b, T* x, T* work) {
  constexpr int w = kWidth<T>;
  const int64_t size = padded(n, w), right = padded(k, w), stride = size + right;
  T* panel = work + size * stride;
  auto* active = reinterpret_cast<typename Of<T>::Mask*>(panel + w * size);
  copy_in(n, n, a, n, work, stride);
  copy_in(n, k, b, k, work + size, stride);
  for (int64_t i = n; i < size; ++i) {
    for (int64_t j = 0; j < stride; ++j) work[i * stride + j] = T(i == j);
  }
  int64_t pivots[w];
  for (int64_t at = 0; at < size; at += w) {
    const int64_t m = size - at, rest = (stride - at) / w - 1;
    T* corner = work + at * stride + at;
    for (int64_t i = 0; i < m; i += w) transpose_block(corner + i * stride, stride, panel + i, m);
    const int64_t zero = factor_panel(panel, m, active, pivots);
    if (zero >= 0) return at + zero;
    for (int j = 0; j < w; ++j) {
      if (pivots[j] == j) continue;
      T *p = corner + j * stride + w, *q = corner + pivots[j] * stride + w;
      for (int64_t c = 0; c < rest * w; c += w) {
        const Vec<T> t = load(p + c);
        store(p + c, load(q + c));
        store(q + c, t);
      }
    }
    transpose_block(panel, m, corner, stride);
    solve_block(rest, panel, int64_t(1), m, static_cast<const T*>(nullptr), corner + w, stride);
    subtract_product(m - w, rest, int64_t(w), panel + w, int64_t(1), m, corner + w, stride,
                     corner + w * stride + w, stride);
  }
  // U x = y from the last row to the first: strides negated.
  const T* last = work + (size - 1) * stride + size - 1;
  substitute_rows(size, k, last, -stride, int64_t(-1), false, work + (size - 1) * stride + size, -stride);
  copy_out(n, k, work + size, stride, x, k);
  return -1;
}

template <class T>
int64_t cholesky(int64_t n, const T* a, T* y, T* work) {
  constexpr int w = kWidth<T>;
  const int64_t size = padded(n, w);
  T square[w * w];
  copy_in(n, n, a, n, work, size);
  for (int64_t i = n; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) work[i * size + j] = T(i == j);
  }
  for (int64_t i = 0; i < size; i += w) {
    for (int64_t j = i; j < size; j += w) {
      transpose_block(work + j * size + i, size, square, w);
      for (int r = 0; r < w; ++r) {
        T* row = work + (i + r) * size + j;
        store(row, (load(row) + load(square + r * w)) * set1(T(0.5)));
      }
    }
  }
  T inverse[w];
  for (int64_t at = 0; at < size; at += w) {
    T* corner = work + at * size + at;
    for (int j = 0; j < w; ++j) {
      T* row = corner + j * size;
      if (!(row[j] > T(0))) return at + j;
      const T root = T(__builtin_sqrt(double(row[j])));
      inverse[j] = T(1) / root;
      store(row, load(row) * set1(inverse[j]));
      row[j] = root;
      for (int i = j + 1; i < w; ++i) {
        T* below = corner + i * size;
        store(below, fnma(load(row), set1(row[i]), load(below)));
      }
    }
    const int64_t rest = (size - at) / w - 1;
    solve_block(rest, corner, int64_t(1), size, inverse, corner + w, size);
    for (int64_t block = 0; block < rest; ++block) {
      const int64_t j = w + block * w;
      subtract_product(int64_t(w), rest - block, int64_t(w), corner + j, int64_t(1), size, corner + j, size,
                       corner + j * size + j, size);
    }
  }
  const auto lane = lane_numbers<T>();
  for (int64_t i = 0; i < n; i += w) {
    const int64_t rows = n - i < w ? n - i : w;
    for (int64_t j = 0; j < n; j += w) {
      if (j <= i) transpose_block(work + j * size + i, size, square, w);
      for (int r = 0; r < w && j >= i; ++r) {
        store(square + r * w, j == i ? (lane <= r ? load(square + r * w) : Vec<T>{}) : Vec<T>{});
      }
      copy_out(rows, n - j < w ? n - j : w, square, int64_t(w), y + i * n + j, n);
    }
  }
  return -1;
}

template <class T>
MatrixKernels<T> kernels_of() {
  return {kWidth<T>, lu_solve<T>, cholesky<T>, substitute<T>};
}

}  // namespace

LinalgKernels linalg_kernels() { return {kernels_of<float>(), kernels_of<double>()}; }

}  // namespace rlx::cpu::RLX_ISA
