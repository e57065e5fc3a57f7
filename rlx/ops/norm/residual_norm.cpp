#include "rlx/ops/norm/residual_norm.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/normalize.h"

namespace rlx::ops {
namespace detail {

Shapes infer_residual_norm(Infer& c, ResidualNormAttrs& a) {
  const int expected = a.has_bias ? 5 : 4;
  if (c.count() != expected) {
    c.fail("has ", c.count(), " operands; with has_bias = ", a.has_bias, " it takes ", expected,
           a.has_bias ? ": x, residual, bias, gamma, beta" : ": x, residual, gamma, beta");
  }
  const Shape& x = c.in(0);
  c.require_float(0);
  c.require_min_rank(0, 1);
  check_eps(c, a.eps);
  check_gradient(c, 1);
  for (int i = 2; i < expected; ++i) check_axis_vector(c, i, x, x.rank() - 1);
  return {x, x};
}

Exprs decompose_residual_norm(const Lower& c, const ResidualNormAttrs& a, bool centred) {
  Expr sum = c.in(0) + c.in(1);
  if (a.has_bias) sum = sum + c.in(2);
  const Expr gamma = c.in(c.count() - 2), beta = c.in(c.count() - 1);
  const Expr y = centred ? layer_norm(sum, gamma, beta, -1, a.eps) : rms_norm(sum, gamma, beta, -1, a.eps);
  return {y, sum};
}

std::vector<OpSample<ResidualNormAttrs>> residual_norm_samples() {
  return {{{false, 1e-5}, {"f32[2,3,4]", "f32[2,3,4]", "f32[4]", "f32[4]"}},
          {{true, 1e-5}, {"f32[2,5]", "f32[2,5]", "f32[5]", "f32[5]", "f32[5]"}},
          {{true, 1e-3}, {"f64[3]", "f64[3]", "f64[3]", "f64[3]", "f64[3]"}},
          {{false, 1e-5}, {"f32[0,3]", "f32[0,3]", "f32[3]", "f32[3]"}},
          {{false, 0.5}, {"f16[2,1]", "f16[2,1]", "f16[1]", "f16[1]"}}};
}

}  // namespace detail

namespace {

template <class Op>
std::pair<Expr, Expr> make_residual(Expr x, Expr residual, Expr bias, Expr gamma, Expr beta, double eps) {
  Values in{x, residual};
  if (bias) in.push_back(bias);
  in.push_back(gamma);
  in.push_back(beta);
  const Exprs out = make_all<Op>(*x.graph, {bool(bias), eps}, in);
  return {out[0], out[1]};
}

}  // namespace

std::pair<Expr, Expr> fused_residual_ln(Expr x, Expr residual, Expr bias, Expr gamma, Expr beta, double eps) {
  return make_residual<FusedResidualLn>(x, residual, bias, gamma, beta, eps);
}
std::pair<Expr, Expr> fused_residual_rms_norm(Expr x, Expr residual, Expr bias, Expr gamma, Expr beta,
                                              double eps) {
  return make_residual<FusedResidualRmsNorm>(x, residual, bias, gamma, beta, eps);
}

}  // namespace rlx::ops
