#include "rlx/ops/block/residual_rms_norm.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/residual_norm.h"

namespace rlx::ops {

std::pair<Expr, Expr> residual_norm(Expr x, Expr residual, Expr gamma, Expr beta, double eps,
                                    FusionPolicy policy) {
  if (policy == FusionPolicy::direct) return fused_residual_rms_norm(x, residual, {}, gamma, beta, eps);
  const Expr sum = add(x, residual);
  return {rms_norm(sum, gamma, beta, -1, eps), sum};
}

Exprs ResidualRmsNorm::decompose(const Lower& c, const Attrs& a) {
  const auto [y, sum] = residual_norm(c.in(0), c.in(1), c.in(2), c.in(3), a.eps, c.policy);
  return {y, sum};
}

std::vector<OpSample<ResidualRmsNorm::Attrs>> ResidualRmsNorm::samples() {
  return {{{}, {"f32[2,3]", "f32[2,3]", "f32[3]", "f32[3]"}},
          {{1e-5}, {"f64[2,3,5]", "f64[2,3,5]", "f64[5]", "f64[5]"}},
          {{1e-5}, {"f32[0,4]", "f32[0,4]", "f32[4]", "f32[4]"}},
          {{1e-5}, {"f32[1,1]", "f32[1,1]", "f32[1]", "f32[1]"}},
          {{1e-6}, {"f32[7,3]", "f32[7,3]", "f32[3]", "f32[3]"}}};
}

}  // namespace rlx::ops
