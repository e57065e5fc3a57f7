#include "rlx/backend/cpu/kernels/linalg.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/lapack.h"
#include "rlx/backend/cpu/kernels/matrix_batch.h"

namespace rlx::cpu {

RLX_ISA_TABLE(LinalgKernels, linalg_kernels)

namespace {

// Matrices of this size are too small to fill vectors: plain loops are faster.
constexpr int64_t kPlainSize = 8;
// From here on the recursive blocking of LAPACK wins over our single level.
constexpr int64_t kLapackSize = 384;

template <class T>
const MatrixKernels<T>& kernels() {
  if constexpr (std::is_same_v<T, float>) {
    return linalg_kernels().f32;
  } else {
    return linalg_kernels().f64;
  }
}

bool by_lapack(Solver solver, int64_t n, DType dtype) {
  if (dtype == DType::c64 || solver == Solver::own) return false;
  return lapack::available() && (solver == Solver::lapack || n >= kLapackSize);
}

// B <- L^-1 B in plain loops: the order and strides of MatrixKernels::substitute, in place.
template <class T>
int64_t substitute_plain(int64_t n, int64_t k, const T* l, int64_t row, int64_t column, bool unit, T* b,
                         int64_t stride) {
  for (int64_t i = 0; i < n; ++i) {
    const T diagonal = l[i * (row + column)];
    if (!unit && diagonal == T(0)) return i;
    for (int64_t p = 0; p < i; ++p) {
      const T factor = l[i * row + p * column];
      for (int64_t j = 0; j < k; ++j) b[i * stride + j] -= factor * b[p * stride + j];
    }
    for (int64_t j = 0; j < k && !unit; ++j) b[i * stride + j] /= diagonal;
  }
  return -1;
}

// [a | b] eliminated in `work` with partial pivoting.
template <class T>
int64_t solve_plain(int64_t n, int64_t k, const T* a, const T* b, T* x, T* work) {
  const int64_t stride = n + k;
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(a + i * n, n, work + i * stride);
    std::copy_n(b + i * k, k, work + i * stride + n);
  }
  for (int64_t j = 0; j < n; ++j) {
    int64_t pivot = j;
    for (int64_t i = j + 1; i < n; ++i) {
      if (std::abs(work[i * stride + j]) > std::abs(work[pivot * stride + j])) pivot = i;
    }
    if (work[pivot * stride + j] == T(0)) return j;
    T* top = work + j * stride;
    if (pivot != j) std::swap_ranges(top, top + stride, work + pivot * stride);
    for (int64_t i = j + 1; i < n; ++i) {
      T* row = work + i * stride;
      const T factor = row[j] / top[j];
      for (int64_t c = j + 1; c < stride; ++c) row[c] -= factor * top[c];
    }
  }
  if (n > 0) {
    T* last = work + (n - 1) * stride;
    substitute_plain(n, k, last + n - 1, -stride, int64_t(-1), false, last + n, -stride);
  }
  for (int64_t i = 0; i < n; ++i) std::copy_n(work + i * stride + n, k, x + i * k);
  return -1;
}

// Elements of work for one matrix.
template <class T>
int64_t solve_work(const DenseSolve& p) {
  if (by_lapack(p.solver, p.n, p.dtype)) return lapack::solve_work(p.n, p.k);
  // No level has more lanes than a cache line has elements: rows and columns are padded to at most this.
  constexpr int64_t lanes = 64 / int64_t(sizeof(T));
  const int64_t n = p.n + lanes, k = p.k + lanes;
  return n * (n + k) + (lanes + 1) * n;
}
template <class T>
int64_t cholesky_work(const Cholesky& p) {
  if (by_lapack(p.solver, p.n, p.dtype)) return lapack::cholesky_work(p.n);
  const int64_t n = p.n + 64 / int64_t(sizeof(T));
  return n * n;
}
template <class T>
int64_t substitute_work(const TriangularSolve& p) {
  return p.n * (p.k + 64 / int64_t(sizeof(T)));
}

template <class Body>
auto with_scalar(DType dtype, const char* where, Body body) {
  if (dtype == DType::c64) return body(complex64());
  if (dtype != DType::f32 && dtype != DType::f64)
    throw invalid(where, ": dtype is ", dtype, "; it must be f32, f64 or c64");
  return with_real(dtype, where, body);
}

}  // namespace

size_t dense_solve_workspace(const DenseSolve& p, int threads) {
  return with_scalar(p.dtype, "dense_solve",
                     [&]<class T>(T) { return workspace_bytes<T>(threads, solve_work<T>(p)); });
}

std::optional<Singular> dense_solve(Team team, const DenseSolve& p, std::byte* workspace) {
  return with_scalar(p.dtype, "dense_solve", [&]<class T>(T) {
    const bool lapack = by_lapack(p.solver, p.n, p.dtype);
    const double work_each = double(p.n) * double(p.n) * double(p.n / 3 + p.k);
    return each_matrix<T>(team, p.batch, work_each, solve_work<T>(p), workspace, [&](int64_t i, T* work) {
      const T* a = static_cast<const T*>(p.a) + i * p.n * p.n;
      const T* b = static_cast<const T*>(p.b) + i * p.n * p.k;
      T* x = static_cast<T*>(p.x) + i * p.n * p.k;
      if constexpr (!std::is_same_v<T, complex64>) {
        if (lapack) return lapack::solve(p.n, p.k, a, b, x, work);
        if (p.n > kPlainSize) return kernels<T>().lu_solve(p.n, p.k, a, b, x, work);
      }
      return solve_plain(p.n, p.k, a, b, x, work);
    });
  });
}

size_t cholesky_workspace(const Cholesky& p, int threads) {
  return with_real(p.dtype, "cholesky",
                   [&]<class T>(T) { return workspace_bytes<T>(threads, cholesky_work<T>(p)); });
}

std::optional<Singular> cholesky(Team team, const Cholesky& p, std::byte* workspace) {
  return with_real(p.dtype, "cholesky", [&]<class T>(T) {
    const bool lapack = by_lapack(p.solver, p.n, p.dtype);
    const double work_each = double(p.n) * double(p.n) * double(p.n) / 6;
    return each_matrix<T>(team, p.batch, work_each, cholesky_work<T>(p), workspace, [&](int64_t i, T* work) {
      const T* a = static_cast<const T*>(p.a) + i * p.n * p.n;
      T* y = static_cast<T*>(p.y) + i * p.n * p.n;
      return lapack ? lapack::cholesky(p.n, a, y, work) : kernels<T>().cholesky(p.n, a, y, work);
    });
  });
}

size_t triangular_solve_workspace(const TriangularSolve& p, int threads) {
  return with_scalar(p.dtype, "triangular_solve",
                     [&]<class T>(T) { return workspace_bytes<T>(threads, substitute_work<T>(p)); });
}

std::optional<Singular> triangular_solve(Team team, const TriangularSolve& p, std::byte* workspace) {
  if (p.n == 0) return std::nullopt;
  return with_scalar(p.dtype, "triangular_solve", [&]<class T>(T) {
    // The rows that depend on no other come first: the last ones of an upper triangle, walked backwards.
    const bool forward = p.lower != p.transpose;
    const int64_t step = forward ? 1 : -1, last = forward ? 0 : p.n - 1;
    const int64_t row = step * (p.transpose ? 1 : p.n), column = step * (p.transpose ? p.n : 1);
    const double work_each = double(p.n) * double(p.n) * double(p.k) / 2;
    return each_matrix<T>(
        team, p.batch, work_each, substitute_work<T>(p), workspace, [&](int64_t i, T* work) {
          const T* a = static_cast<const T*>(p.a) + i * p.n * p.n + last * (p.n + 1);
          const T* b = static_cast<const T*>(p.b) + i * p.n * p.k + last * p.k;
          T* x = static_cast<T*>(p.x) + i * p.n * p.k + last * p.k;
          int64_t zero;
          if constexpr (std::is_same_v<T, complex64>) {
            if (x != b) {
              for (int64_t r = 0; r < p.n; ++r) std::copy_n(b + r * step * p.k, p.k, x + r * step * p.k);
            }
            zero = substitute_plain(p.n, p.k, a, row, column, p.unit_diagonal, x, step * p.k);
          } else {
            zero = kernels<T>().substitute(p.n, p.k, a, row, column, p.unit_diagonal, b, step * p.k, x,
                                           step * p.k, work);
          }
          return zero < 0 || forward ? zero : p.n - 1 - zero;
        });
  });
}

}  // namespace rlx::cpu
