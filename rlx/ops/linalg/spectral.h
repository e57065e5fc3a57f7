// What the derivatives of eigenvalues and singular values have in common.
//
// Vectors that belong to equal values are not functions of the matrix: the term 1 / (w_j - w_i) of their
// derivative has no value, and what depends on the vectors through it is NaN. Vectors of other values keep
// their derivatives.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// The dtype of moduli: f32 for c64, real dtypes as they are.
DType real_dtype(DType t);

/// Differences d[.., i, j] = w[.., j] - w[.., i] of values w[.., N], and where they count as zero: within
/// rounding error on the scale of the largest value.
struct Gaps {
  Expr difference;
  Expr equal;     // bool, true on the diagonal too
  Expr repeated;  // bool, off the diagonal only
};
Gaps gaps_of(Expr values);

/// x[.., i, j] / d[.., i, j] off the diagonal and 0 on it; between equal values NaN where `asked`, else 0.
Expr over_gaps(Expr x, const Gaps& gaps, Expr asked);

/// Whether a pair of columns of x[.., M, N] has anything but zeros, bool[.., N, N].
Expr columns_touched(Expr x);
/// Whether elements are not zero but for rounding, on the scale of the largest of their matrix.
Expr beyond_rounding(Expr x);

/// The cotangents of values, as the diagonal of a matrix; NaN where equal values have different ones, for
/// such a function has no derivative there.
Expr value_diagonal(Expr dw, const Gaps& gaps);

/// Complex vectors are unique up to a phase, which makes the entry of largest modulus of each column of v[..,
/// M, N] positive. That entry and, at its place, 1 (else 0).
struct PhaseAnchor {
  Expr entry;  // real, [.., 1, N]
  Expr place;  // real, [.., M, N]
};
PhaseAnchor phase_anchor(Expr v);
/// Im <a_j, b_j> of each pair of columns, [.., 1, N].
Expr column_phase(Expr a, Expr b);
/// i x for real x, of the dtype of `like`.
Expr times_i(Expr x, Expr like);

}  // namespace rlx::ops
