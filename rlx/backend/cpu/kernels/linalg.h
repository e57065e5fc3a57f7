// Dense solvers for batches of row-major matrices: LU, Cholesky and triangular systems.
//
// Matrices of a batch are contiguous, one behind the other; a batch is split over threads, a matrix never is,
// so results do not depend on the number of threads. A singular matrix is reported, not thrown: the other
// matrices of the batch are finished, the result of the singular one is unspecified.
//
// Large f32 and f64 matrices go to LAPACK where the build found it (lapack.h), single-threaded; everything
// else, and everything without LAPACK, is solved here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

/// The first matrix of a batch that has no solution, and the row or column where that showed.
struct Singular {
  int64_t matrix, index;
};

/// Which code factors a matrix; `automatic` chooses by size.
enum class Solver : uint8_t { automatic, own, lapack };

/// a x = b by LU with partial pivoting: a [batch, n, n], b and x [batch, n, k]; x may be b.
/// Singular::index is the first column without a pivot.
struct DenseSolve {
  DType dtype = DType::f32;  // f32, f64 or c64
  int64_t batch = 1, n = 0, k = 1;
  const void* a = nullptr;
  const void* b = nullptr;
  void* x = nullptr;
  Solver solver = Solver::automatic;
};
size_t dense_solve_workspace(const DenseSolve&, int threads);
std::optional<Singular> dense_solve(Team, const DenseSolve&, std::byte* workspace);

/// y y^T = (a + a^T) / 2, y lower triangular with a positive diagonal and zeros above it; y may be a.
/// Singular::index is the first row whose pivot is not positive (NaN included).
struct Cholesky {
  DType dtype = DType::f32;  // f32 or f64
  int64_t batch = 1, n = 0;
  const void* a = nullptr;
  void* y = nullptr;
  Solver solver = Solver::automatic;
};
size_t cholesky_workspace(const Cholesky&, int threads);
std::optional<Singular> cholesky(Team, const Cholesky&, std::byte* workspace);

/// op(a) x = b for triangular a [batch, n, n], b and x [batch, n, k]; op transposes when asked, and only the
/// triangle is read. x may be b. Singular::index is a row with a zero on the diagonal: the first that
/// substitution meets.
struct TriangularSolve {
  DType dtype = DType::f32;  // f32, f64 or c64
  int64_t batch = 1, n = 0, k = 1;
  bool lower = true, transpose = false, unit_diagonal = false;
  const void* a = nullptr;
  const void* b = nullptr;
  void* x = nullptr;
};
size_t triangular_solve_workspace(const TriangularSolve&, int threads);
std::optional<Singular> triangular_solve(Team, const TriangularSolve&, std::byte* workspace);

/// Serial kernels on one matrix. Work areas are aligned to 64 bytes; sizes in elements of T.
template <class T>
struct MatrixKernels {
  int lanes;
  /// [a | b] -> x; returns the column without a pivot, or -1. work: lu_work(n, k).
  int64_t (*lu_solve)(int64_t n, int64_t k, const T* a, const T* b, T* x, T* work);
  /// Returns the row without a positive pivot, or -1. work: cholesky_work(n).
  int64_t (*cholesky)(int64_t n, const T* a, T* y, T* work);
  /// Substitution in the order of rows: x_i = (b_i - sum over p < i of l(i, p) x_p) / l(i, i), with l(i, p)
  /// at l[i * row + p * column] and negative strides to walk backwards. b [n, k] is at b with `stride`
  /// between its rows, `work` holds n rows of k rounded up to lanes. Returns the step with a zero diagonal,
  /// or -1.
  int64_t (*substitute)(int64_t n, int64_t k, const T* l, int64_t row, int64_t column, bool unit, const T* b,
                        int64_t stride, T* x, int64_t x_stride, T* work);
};
struct LinalgKernels {
  MatrixKernels<float> f32;
  MatrixKernels<double> f64;
};

}  // namespace rlx::cpu
