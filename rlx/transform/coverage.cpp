#include "rlx/transform/coverage.h"

namespace rlx::transform {
namespace {

// What the samples say: an operator without differentiable operands or results has no derivative to ask for.
bool has_differentiable_operand(const ir::OpDef& op) {
  for (const ir::Sample& s : op.samples()) {
    for (const std::string& spec : s.inputs) {
      size_t pos = 0;
      if (is_differentiable(parse_shape(spec, pos).dtype())) return true;
    }
  }
  return false;
}

}  // namespace

Coverage coverage(const ir::OpDef& op) {
  if (op.traits.leaf) return {"leaf", "leaf", "leaf", ""};
  Coverage c;
  c.vmap = op.vmap                 ? "rule"
           : op.traits.elementwise ? "elementwise"
           : op.is_composite()     ? "decomposition"
                                   : "loop";
  if (op.traits.zero_gradient) {
    c.vjp = c.jvp = "zero";
    c.note = "piecewise constant or not a number: the derivative is zero where it exists";
    return c;
  }
  if (!has_differentiable_operand(op)) {
    c.vjp = c.jvp = "none";
    c.note = "no differentiable operands";
    return c;
  }
  c.vjp = op.vjp ? "rule" : op.is_composite() ? "decomposition" : "none";
  c.jvp = op.jvp              ? "rule"
          : op.traits.linear  ? "linear"
          : op.vjp            ? "transpose of vjp"
          : op.is_composite() ? "decomposition"
                              : "none";
  if (op.traits.surrogate_gradient) c.note = "the derivative is defined by its rule, not by differences";
  if (c.vjp == "none") c.note = "results are not differentiable";
  return c;
}

}  // namespace rlx::transform
