// Matrix factorisations in double precision, plain and row-major: the meaning of the linear algebra
// operators, and what the CPU kernels use where there is no LAPACK.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace rlx {

/// P A = L U with partial pivoting; L has a unit diagonal and shares the storage with U.
template <class T>
struct Lu {
  int64_t n;
  std::vector<T> lu;
  std::vector<int64_t> row;           // row i of P A is row row[i] of A
  int sign = 1;                       // determinant of P
  std::optional<int64_t> zero_pivot;  // the first column without a pivot: A is singular

  Lu(const T* a, int64_t n);
  /// B <- A^-1 B for B[n, k].
  void solve(T* b, int64_t k) const;
};

/// B <- op(A)^-1 B for triangular A[n, n] and B[n, k]; op transposes when asked. Only the triangle is read.
/// Returns a row with a zero on the diagonal, if there is one; B is then unfinished.
template <class T>
std::optional<int64_t> solve_triangular(const T* a, int64_t n, T* b, int64_t k, bool lower, bool transpose,
                                        bool unit_diagonal);

/// A = L L^H; A becomes L, zero above the diagonal. Returns the first row whose pivot is not positive.
template <class T>
std::optional<int64_t> factor_cholesky(T* a, int64_t n);

// The factorisations below work at any scale: they divide by a power of two first. A matrix with NaN or
// infinity has factors of NaN. T is double or std::complex<double>.

/// A[m, n] = Q[m, k] R[k, n], k = min(m, n), by Householder reflections; diagonal of R real and not negative.
template <class T>
void factor_qr(const T* a, int64_t m, int64_t n, T* q, T* r);

/// Makes the entry of largest modulus of column j of u[m, k] positive; whether it flipped. Entries that
/// rounding may have told apart count as equal, and the first decides.
template <class T>
bool fix_sign(T* u, int64_t m, int64_t k, int64_t j) {
  const T slack = 1 + std::max(T(1e-9), 64 * std::numeric_limits<T>::epsilon());
  T largest = 0;
  for (int64_t i = 0; i < m; ++i) {
    if (std::abs(u[i * k + j]) > std::abs(largest) * slack) largest = u[i * k + j];
  }
  if (!(largest < 0)) return false;
  for (int64_t i = 0; i < m; ++i) u[i * k + j] = -u[i * k + j];
  return true;
}

/// Hermitian A = V diag(w) V^H, w ascending, by cyclic Jacobi rotations. The entry of largest modulus of each
/// column of V is positive.
template <class T>
void factor_eigen(const T* a, int64_t n, double* w, T* v);

/// A[m, n] = U[m, k] diag(s) Vh[k, n], k = min(m, n), s descending, by one-sided Jacobi rotations. The entry
/// of largest modulus of each column of U is positive.
template <class T>
void factor_svd(const T* a, int64_t m, int64_t n, T* u, double* s, T* vh);

extern template struct Lu<double>;
extern template struct Lu<std::complex<double>>;

}  // namespace rlx
