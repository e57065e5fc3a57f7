#include "rlx/ops/elementwise/activation_backward.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"

namespace rlx::ops {
namespace {

void same_extents(Infer& c) {
  const std::string what = cat("sizes of ", c.operand_name(0), " and ", c.operand_name(1));
  c.require_rank(1, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i) c.same(c.in(0).dim(i), c.in(1).dim(i), what);
}

Shapes infer_backward(Infer& c) {
  c.same_dtype({0, 1});
  c.require_float(0);
  same_extents(c);
  return {c.in(0)};
}

// f'(x) of the operator that computes an activation; nothing where it is zero.
template <class Op>
Expr derivative(Expr x) {
  if constexpr (Op::traits.zero_gradient) {
    return {};
  } else {
    return Op::derivative(x, make<Op>(*x.graph, {}, {x}));
  }
}

// In the order of the enumerators.
constexpr Expr (*kDerivatives[])(Expr) = {
    derivative<Gelu>, derivative<GeluApprox>, derivative<Silu>, derivative<Relu>, derivative<Sigmoid>,
    derivative<Tanh>, derivative<Exp>,        derivative<Log>,  derivative<Sqrt>, derivative<Rsqrt>,
    derivative<Neg>,  derivative<Abs>,        derivative<Sin>,  derivative<Cos>,  derivative<Tan>,
    derivative<Atan>, derivative<Round>};
static_assert(std::size(kDerivatives) == choice_names(Activation{}).size());

}  // namespace

Shapes ReluBackward::infer(Infer& c, Attrs&) { return infer_backward(c); }

Exprs ReluBackward::decompose(const Lower& c, const Attrs&) {
  const Expr zero = scalar_like(c.in(0), 0);
  return {where(greater(c.in(0), zero), c.in(1), zero)};
}

std::vector<OpSample<NoAttrs>> ReluBackward::samples() {
  return {{{}, {"f32[2,3]", "f32[2,3]"}}, {{}, {"f64[7]", "f64[7]"}}, {{}, {"f32[]", "f32[]"}},
          {{}, {"f32[0,3]", "f32[0,3]"}}, {{}, {"f16[1]", "f16[1]"}}, {{}, {"bf16[5]", "bf16[5]"}}};
}

Shapes ActivationBackward::infer(Infer& c, Attrs&) { return infer_backward(c); }

Exprs ActivationBackward::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), f = kDerivatives[size_t(a.kind)](x);
  return {f ? c.in(1) * f : zeros_like(x)};
}

std::vector<OpSample<ActivationBackward::Attrs>> ActivationBackward::samples() {
  std::vector<OpSample<Attrs>> out;
  for (size_t i = 0; i < choice_names(Activation{}).size(); ++i)
    out.push_back({{Activation(i)}, {"f32[2,3] positive", "f32[2,3]"}});
  out.push_back({{Activation::silu}, {"f64[0]", "f64[0]"}});
  out.push_back({{Activation::gelu}, {"f16[1]", "f16[1]"}});
  out.push_back({{Activation::abs}, {"bf16[5]", "bf16[5]"}});
  return out;
}

Shapes ComplexNormSqBackward::infer(Infer& c, Attrs&) {
  if (!is_complex(c.in(0).dtype()))
    c.fail("z: ", c.in(0), " has dtype ", c.in(0).dtype(), "; it must be c64");
  c.require_float(1);
  same_extents(c);
  return {c.in(0)};
}

Exprs ComplexNormSqBackward::decompose(const Lower& c, const Attrs&) {
  return {c.in(0) * cast(c.in(1), c.in(0).dtype())};
}

std::vector<OpSample<NoAttrs>> ComplexNormSqBackward::samples() {
  return {{{}, {"c64[2,3]", "f32[2,3]"}},
          {{}, {"c64[7]", "f32[7]"}},
          {{}, {"c64[]", "f32[]"}},
          {{}, {"c64[0,2]", "f32[0,2]"}},
          {{}, {"c64[1]", "f32[1]"}}};
}

Expr relu_backward(Expr x, Expr dy) { return make<ReluBackward>(*x.graph, {}, {x, dy}); }
Expr activation_backward(Activation kind, Expr x, Expr dy) {
  return make<ActivationBackward>(*x.graph, {kind}, {x, dy});
}
Expr complex_norm_sq_backward(Expr z, Expr g) { return make<ComplexNormSqBackward>(*z.graph, {}, {z, g}); }

}  // namespace rlx::ops
