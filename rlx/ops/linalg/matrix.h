// Pieces of matrix formulas. A matrix is the last two axes of a tensor; the axes before them are a batch.
#pragma once

#include <complex>
#include <vector>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// The conjugate transpose of each matrix.
Expr adjoint(Expr x);

/// 0, 1, .. n-1 as i32.
Expr index_vector(Graph& g, Dim n);
/// The elements with column - row <= offset, zero elsewhere; and those with column - row >= offset.
Expr lower_part(Expr x, int offset = 0);
Expr upper_part(Expr x, int offset = 0);
/// x[.., i, i] of square matrices.
Expr diagonal_of(Expr x);
/// The matrices with x along their diagonals.
Expr diagonal_matrix(Expr x);
/// Identity matrices with the extents of x, which are square.
Expr identity_like(Expr x);
/// (x + x^H) / 2
Expr hermitian_part(Expr x);
/// The distance from 1 to the next number of a float dtype; of the parts of c64.
double epsilon_of(DType t);

/// Refuses an operand whose last two axes are not one size; returns that size.
Dim require_square(Infer& c, int i);
/// Refuses a right side that fits the square operand `a` neither as vectors [.., N] nor as matrices [.., N,
/// K].
void require_right_side(Infer& c, int a, int b);

/// A right side of the systems in `a`, with vectors seen as matrices of one column.
Expr right_matrix(Expr x, Expr a);

/// How many matrices of rows x columns elements a tensor of this many elements holds; 0 for empty ones.
int64_t matrix_count(int64_t elements, int64_t rows, int64_t columns);

template <class T>
std::vector<T> scalars_of(const Literal& x) {
  if constexpr (std::is_same_v<T, double>) {
    return x.to_reals();
  } else {
    return x.to_complexes();
  }
}
inline double conj_value(double x) { return x; }
inline std::complex<double> conj_value(std::complex<double> x) { return std::conj(x); }
inline Literal literal_of(const Shape& s, const std::vector<double>& v) { return Literal::reals(s, v); }
inline Literal literal_of(const Shape& s, const std::vector<std::complex<double>>& v) {
  return Literal::complexes(s, v);
}

/// Calls f with a zero of the type in which a reference computes: double or std::complex<double>.
template <class F>
Literals with_scalar(DType t, F f) {
  return is_complex(t) ? f(std::complex<double>()) : f(double());
}

}  // namespace rlx::ops
