#include "rlx/ops/norm/normalize.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Expr widened(Expr x) {
  const bool narrow = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  return narrow ? cast(x, DType::f32) : x;
}

Normalized normalize(Expr x, const std::vector<int>& axes, double eps, bool centred) {
  const Expr d = centred ? x - reduce_mean(x, axes, true) : x;
  const Expr r = rsqrt(reduce_mean(square(d), axes, true) + eps);
  return {d * r, r};
}

Expr normalize_gradient(const Normalized& n, Expr g, const std::vector<int>& axes, bool centred) {
  const Expr along = n.hat * reduce_mean(g * n.hat, axes, true);
  const Expr left = centred ? g - reduce_mean(g, axes, true) : g;
  return n.r * (left - along);
}

Expr on_axis(Expr v, int axis, int rank) {
  Dims dims(size_t(rank), Dim(1));
  dims[size_t(axis)] = v.dim(0);
  return reshape(v, dims);
}

Expr sum_onto_axis(Expr t, int axis) {
  std::vector<int> others;
  for (int i = 0; i < t.rank(); ++i) {
    if (i != axis) others.push_back(i);
  }
  return others.empty() ? t : reduce_sum(t, others);
}

void check_eps(const Infer& c, double eps) {
  if (!(eps >= 0) || std::isinf(eps)) c.fail("eps ", eps, " must be a number that is not negative");
}

void check_axis_vector(Infer& c, int i, const Shape& x, int axis) {
  if (i >= c.count()) return;
  c.same_dtype({0, i});
  c.require_rank(i, 1);
  if (decide_equal(c.in(i).dim(0), x.dim(axis)) == false) {
    c.fail(c.operand_name(i), ": ", c.in(i), " must have the size of axis ", axis, " of ", x);
  }
  c.same(c.in(i).dim(0), x.dim(axis), "sizes");
}

void check_gradient(Infer& c, int i) {
  c.same_dtype({0, i});
  c.require_rank(i, c.in(0).rank());
  const std::string what = cat("sizes of ", c.operand_name(0), " and ", c.operand_name(i));
  for (int k = 0; k < c.in(0).rank(); ++k) c.same(c.in(0).dim(k), c.in(i).dim(k), what);
}

Values with_parameters(Expr x, Expr gamma, Expr beta, std::string_view op) {
  if (!gamma && beta) throw invalid(op, ": beta is given without gamma; give ones for gamma");
  Values in{x};
  if (gamma) in.push_back(gamma);
  if (beta) in.push_back(beta);
  return in;
}

Expr batched_affine(const Vmap& c, Expr hat, int first, int axis) {
  const auto spread = [&](int i) {
    Dims dims(size_t(hat.rank()), Dim(1));
    dims[size_t(axis)] = c.in(i).dim(-1);
    if (c.batched(i)) dims[0] = c.size;
    return reshape(c.in(i), dims);
  };
  Expr y = hat;
  if (first < c.count()) y = y * spread(first);
  if (first + 1 < c.count()) y = y + spread(first + 1);
  return y;
}

}  // namespace rlx::ops
