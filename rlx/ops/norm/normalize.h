// The mathematics shared by all normalisations.
//
//   m = mean(x) (0 when not centred),  r = 1 / sqrt(mean((x - m)^2) + eps),  hat = (x - m) r
// over `axes`. The variance is taken of the differences, in a second pass, so that a large mean does not
// cancel. The gradient of hat, given g = dL/dhat, is
//   dx = r (g - mean(g) - hat mean(g hat))
// where mean(g) belongs to the centred form only.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Normalized {
  Expr hat, r;
};

Normalized normalize(Expr x, const std::vector<int>& axes, double eps, bool centred);
Expr normalize_gradient(const Normalized& n, Expr g, const std::vector<int>& axes, bool centred);

/// f16 and bf16 as f32, in which statistics are taken; other types as they are.
Expr widened(Expr x);

/// v[n] with size-1 axes around it, so that it broadcasts along `axis` of a tensor of `rank` axes.
Expr on_axis(Expr v, int axis, int rank);
/// Sum over all axes but one: [n].
Expr sum_onto_axis(Expr t, int axis);

/// Checks that eps is a number >= 0, and that operand i is a vector of the size of x's axis, in x's dtype.
void check_eps(const Infer& c, double eps);
void check_axis_vector(Infer& c, int i, const Shape& x, int axis);
/// Checks that operand i, a gradient, has the type of x, operand 0.
void check_gradient(Infer& c, int i);

/// x and, where they are given, gamma and beta; `op` is who complains when beta comes alone.
Values with_parameters(Expr x, Expr gamma, Expr beta, std::string_view op);

/// hat gamma + beta where the operands from `first` on are gamma and beta and may be missing or batched;
/// `axis` counts the batch in front of hat.
Expr batched_affine(const Vmap& c, Expr hat, int first, int axis);

}  // namespace rlx::ops
