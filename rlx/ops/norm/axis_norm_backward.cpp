#include "rlx/ops/norm/axis_norm_backward.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/norm/normalize.h"

namespace rlx::ops {
namespace {

Expr input_gradient(Expr x, Expr gamma, Expr dy, const AxisNormAttrs& a, bool centred) {
  const std::vector<int> axes{a.axis};
  const Expr g = widened(dy) * on_axis(widened(gamma), a.axis, x.rank());
  const Normalized n = normalize(widened(x), axes, a.eps, centred);
  return cast(normalize_gradient(n, g, axes, centred), x.dtype());
}

Expr gamma_gradient(Expr x, Expr dy, int axis, double eps, bool centred) {
  const Expr hat = normalize(widened(x), {axis}, eps, centred).hat;
  return cast(sum_onto_axis(widened(dy) * hat, axis), x.dtype());
}

}  // namespace

Shapes LayerNormBackwardInput::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  a.axis = c.axis(a.axis, 0);
  check_eps(c, a.eps);
  check_axis_vector(c, 1, c.in(0), a.axis);
  check_gradient(c, 2);
  return {c.in(0)};
}

Exprs LayerNormBackwardInput::decompose(const Lower& c, const Attrs& a) {
  return {input_gradient(c.in(0), c.in(1), c.in(2), a, true)};
}

std::vector<OpSample<AxisNormAttrs>> LayerNormBackwardInput::samples() {
  return {{{-1, 1e-5}, {"f32[2,3,8]", "f32[8]", "f32[2,3,8]"}},
          {{0, 1e-3}, {"f64[5,2]", "f64[5]", "f64[5,2]"}},
          {{-1, 0.1}, {"f32[7]", "f32[7]", "f32[7]"}},
          {{-1, 1e-5}, {"f32[0,3]", "f32[3]", "f32[0,3]"}},
          {{-2, 0.5}, {"f16[1,2]", "f16[1]", "f16[1,2]"}}};
}

Shapes LayerNormBackwardGamma::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  a.axis = c.axis(a.axis, 0);
  check_eps(c, a.eps);
  check_gradient(c, 1);
  const Dim size = c.in(0).dim(a.axis);
  if (a.gamma_shape.empty()) a.gamma_shape = {size};
  if (a.gamma_shape.size() != 1 || decide_equal(a.gamma_shape[0], size) == false) {
    c.fail("gamma_shape ", a.gamma_shape, " must be [", size, "], the size of axis ", a.axis,
           " of x: ", c.in(0));
  }
  c.same(a.gamma_shape[0], size, "sizes");
  return {c.in(0).with_dims(a.gamma_shape)};
}

Exprs LayerNormBackwardGamma::decompose(const Lower& c, const Attrs& a) {
  return {gamma_gradient(c.in(0), c.in(1), a.axis, a.eps, true)};
}

std::vector<OpSample<LayerNormBackwardGamma::Attrs>> LayerNormBackwardGamma::samples() {
  return {{{-1, 1e-5}, {"f32[2,3,8]", "f32[2,3,8]"}},
          {{0, 1e-3, {5}}, {"f64[5,2]", "f64[5,2]"}},
          {{-1, 0.1}, {"f32[7]", "f32[7]"}},
          {{-1, 1e-5}, {"f32[0,3]", "f32[0,3]"}},
          {{-2, 0.5}, {"bf16[1,2]", "bf16[1,2]"}}};
}

namespace detail {

Shapes infer_rms_backward(Infer& c, AxisNormAttrs& a) {
  c.require_float(0);
  a.axis = c.axis(a.axis, 0);
  check_eps(c, a.eps);
  check_axis_vector(c, 1, c.in(0), a.axis);
  check_axis_vector(c, 2, c.in(0), a.axis);
  check_gradient(c, 3);
  return {c.in(0)};
}

std::vector<OpSample<AxisNormAttrs>> rms_backward_samples() {
  return {{{-1, 1e-5}, {"f32[2,3,8]", "f32[8]", "f32[8]", "f32[2,3,8]"}},
          {{0, 1e-3}, {"f64[5,2]", "f64[5]", "f64[5]", "f64[5,2]"}},
          {{-1, 0.1}, {"f32[7]", "f32[7]", "f32[7]", "f32[7]"}},
          {{-1, 1e-5}, {"f32[0,3]", "f32[3]", "f32[3]", "f32[0,3]"}},
          {{-2, 0.5}, {"f16[1,2]", "f16[1]", "f16[1]", "f16[1,2]"}}};
}

}  // namespace detail

Exprs RmsNormBackwardInput::decompose(const Lower& c, const Attrs& a) {
  return {input_gradient(c.in(0), c.in(1), c.in(3), a, false)};
}
Exprs RmsNormBackwardGamma::decompose(const Lower& c, const Attrs& a) {
  return {gamma_gradient(c.in(0), c.in(3), a.axis, a.eps, false)};
}
Exprs RmsNormBackwardBeta::decompose(const Lower& c, const Attrs& a) {
  return {cast(sum_onto_axis(widened(c.in(3)), a.axis), c.in(0).dtype())};
}

Expr layer_norm_backward_input(Expr x, Expr gamma, Expr dy, int axis, double eps) {
  return make<LayerNormBackwardInput>(*x.graph, {axis, eps}, {x, gamma, dy});
}
Expr layer_norm_backward_gamma(Expr x, Expr dy, Dims gamma_shape, int axis, double eps) {
  return make<LayerNormBackwardGamma>(*x.graph, {axis, eps, std::move(gamma_shape)}, {x, dy});
}
Expr rms_norm_backward_input(Expr x, Expr gamma, Expr beta, Expr dy, int axis, double eps) {
  return make<RmsNormBackwardInput>(*x.graph, {axis, eps}, {x, gamma, beta, dy});
}
Expr rms_norm_backward_gamma(Expr x, Expr gamma, Expr beta, Expr dy, int axis, double eps) {
  return make<RmsNormBackwardGamma>(*x.graph, {axis, eps}, {x, gamma, beta, dy});
}
Expr rms_norm_backward_beta(Expr x, Expr gamma, Expr beta, Expr dy, int axis, double eps) {
  return make<RmsNormBackwardBeta>(*x.graph, {axis, eps}, {x, gamma, beta, dy});
}

}  // namespace rlx::ops
