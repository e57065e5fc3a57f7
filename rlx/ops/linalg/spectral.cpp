#include "rlx/ops/linalg/spectral.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

// Equal values that were computed apart differ by this many units of the last place of the largest. Narrow
// floats are computed wider and rounded.
double slack_of(DType t) { return t == DType::f16 || t == DType::bf16 ? 1 : 16; }

Expr largest_modulus(Expr x, const std::vector<int>& axes) { return reduce_max(abs(x), axes, true); }

Expr modulus_squared(Expr x) { return is_complex(x.dtype()) ? complex_norm_sq(x) : x * x; }

Expr off_diagonal(Expr x) {
  const Expr index = index_vector(*x.graph, x.dim(-1));
  return compare(CompareOp::ne, unsqueeze(index, 1), index);
}

Expr either(Expr flags) { return logical_or(unsqueeze(flags, -1), unsqueeze(flags, -2)); }

}  // namespace

DType real_dtype(DType t) { return is_complex(t) ? DType::f32 : t; }

Gaps gaps_of(Expr values) {
  const Expr w = stop_gradient(values);
  const Expr apart = abs(unsqueeze(w, -2) - unsqueeze(w, -1));
  const Expr scale = unsqueeze(largest_modulus(w, {-1}), -1);
  const Expr equal = compare(CompareOp::le, apart, slack_of(w.dtype()) * epsilon_of(w.dtype()) * scale);
  return {unsqueeze(values, -2) - unsqueeze(values, -1), equal, logical_and(equal, off_diagonal(apart))};
}

Expr over_gaps(Expr x, const Gaps& gaps, Expr asked) {
  const Expr d = gaps.difference;
  // Both sides are replaced before dividing, so that no infinity meets a zero cotangent.
  const Expr quotient =
      where(gaps.equal, scalar_like(x, 0), x) / cast(where(gaps.equal, scalar_like(d, 1), d), x.dtype());
  return where(logical_and(gaps.repeated, asked), scalar_like(x, NAN), quotient);
}

Expr columns_touched(Expr x) {
  const Expr size = modulus_squared(stop_gradient(x));
  const Expr untouched = all(compare(CompareOp::eq, size, scalar_like(size, 0)), {-2});
  return either(logical_not(untouched));
}

Expr beyond_rounding(Expr x) {
  const Expr size = modulus_squared(stop_gradient(x));
  const double slack = slack_of(x.dtype()) * epsilon_of(x.dtype());
  return compare(CompareOp::gt, size, slack * slack * reduce_max(size, {-2, -1}, true));
}

Expr value_diagonal(Expr dw, const Gaps& gaps) {
  const Expr d = stop_gradient(dw);
  const Expr apart = abs(unsqueeze(d, -2) - unsqueeze(d, -1));
  const Expr scale = unsqueeze(largest_modulus(d, {-1}), -1);
  const Expr differ = compare(CompareOp::gt, apart, std::sqrt(epsilon_of(d.dtype())) * scale);
  const Expr unclear = any(logical_and(gaps.repeated, differ), {-1});
  return diagonal_matrix(where(unclear, scalar_like(dw, NAN), dw));
}

PhaseAnchor phase_anchor(Expr v) {
  const Expr x = stop_gradient(v), size = complex_norm_sq(x);
  // The anchor has no imaginary part; of several such entries it is the first of the largest.
  const Expr real = compare(CompareOp::eq, imag_part(x), scalar_like(size, 0));
  const Expr at = argmax(where(real, size, scalar_like(size, -1)), -2, true, DType::i32);
  const Expr row = unsqueeze(index_vector(*v.graph, v.dim(-2)), 1);
  const Expr place = cast(compare(CompareOp::eq, row, at), size.dtype());
  return {reduce_sum(real_part(v) * place, {-2}, true), place};
}

Expr column_phase(Expr a, Expr b) { return imag_part(reduce_sum(conj_of(a) * b, {-2}, true)); }

Expr times_i(Expr x, Expr like) { return cast(make_complex(zeros_like(x), x), like.dtype()); }

}  // namespace rlx::ops
