#include "rlx/lang/builders/norm.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/loss/cross_entropy.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/norm/residual_norm.h"

namespace rlx {

Value NormBuilder::layer_norm(Value input, Value gamma, Value beta, int axis, double eps,
                              const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::layer_norm(t(input), t(gamma), t(beta), axis, eps); });
}

Value NormBuilder::ln(Value x, Value gamma, Value beta, double eps, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::layer_norm(t(x), t(gamma), t(beta), -1, eps); });
}

Value NormBuilder::rms_norm(Value x, Value gamma, std::optional<Value> beta, double eps,
                            const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::rms_norm(t(x), t(gamma), t(beta), -1, eps); });
}

Value NormBuilder::rms_norm(Value x, Value gamma, double eps, const Declared& shape, const Loc& loc) {
  return rms_norm(x, gamma, std::nullopt, eps, shape, loc);
}

Value NormBuilder::layer_norm2d(Value x, Value gamma, Value beta, double eps, const Declared& shape,
                                const Loc& loc) {
  return one(shape, loc, [&] { return ops::layer_norm2d(t(x), t(gamma), t(beta), eps); });
}

Value NormBuilder::group_norm(Value x, Value gamma, Value beta, int64_t num_groups, double eps,
                              const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::group_norm(t(x), t(gamma), t(beta), num_groups, eps); });
}

std::pair<Value, Value> NormBuilder::fused_residual_ln(Value x, Value residual, std::optional<Value> bias,
                                                       Value gamma, Value beta, double eps, const Loc& loc) {
  return two(loc, [&] { return ops::fused_residual_ln(t(x), t(residual), t(bias), t(gamma), t(beta), eps); });
}

std::pair<Value, Value> NormBuilder::fused_residual_rms_norm(Value x, Value residual,
                                                             std::optional<Value> bias, Value gamma,
                                                             Value beta, double eps, const Loc& loc) {
  return two(
      loc, [&] { return ops::fused_residual_rms_norm(t(x), t(residual), t(bias), t(gamma), t(beta), eps); });
}

Value NormBuilder::softmax_cross_entropy_with_logits(Value logits, Value labels, const Declared& shape,
                                                     const Loc& loc) {
  return one(shape, loc, [&] { return ops::softmax_cross_entropy_with_logits(t(logits), t(labels)); });
}

}  // namespace rlx
