#include "rlx/ops/norm/axis_norm.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/norm/axis_norm_backward.h"
#include "rlx/ops/norm/normalize.h"

namespace rlx::ops {
namespace detail {

Shapes infer_axis_norm(Infer& c, AxisNormAttrs& a) {
  c.require_float(0);
  a.axis = c.axis(a.axis, 0);
  check_eps(c, a.eps);
  check_axis_vector(c, 1, c.in(0), a.axis);
  check_axis_vector(c, 2, c.in(0), a.axis);
  return {c.in(0)};
}

Exprs decompose_axis_norm(const Lower& c, const AxisNormAttrs& a, bool centred) {
  const Expr x = c.in(0);
  Expr y = normalize(widened(x), {a.axis}, a.eps, centred).hat;
  if (c.has(1)) y = y * on_axis(widened(c.in(1)), a.axis, x.rank());
  if (c.has(2)) y = y + on_axis(widened(c.in(2)), a.axis, x.rank());
  return {cast(y, x.dtype())};
}

std::vector<OpSample<AxisNormAttrs>> axis_norm_samples() {
  return {{{-1, 1e-5}, {"f32[2,3,8]", "f32[8]", "f32[8]"}},
          {{0, 1e-3}, {"f64[5,2]", "f64[5]", "f64[5]"}},
          {{1, 1e-5}, {"f32[2,3,4]", "f32[3]"}},
          {{-1, 0.1}, {"f32[7]"}},
          {{-1, 1e-5}, {"f32[0,3]", "f32[3]", "f32[3]"}},
          {{-1, 0.5}, {"f32[2,1]", "f32[1]", "f32[1]"}},
          {{-1, 1e-2}, {"f16[2,5]", "f16[5]", "f16[5]"}},
          {{-2, 1e-5}, {"bf16[1,4,2]", "bf16[4]", "bf16[4]"}}};
}

}  // namespace detail

namespace {

Expr gamma_or_ones(const Vjp& c, int axis) {
  return c.count() > 1 ? c.in(1) : full(c.graph, Shape(c.in(0).dtype(), {c.in(0).dim(axis)}), 1);
}

// Shared parameters stay part of the operator; batched ones are applied behind it.
template <class Op>
Exprs vmap_axis_norm(const Vmap& c, const AxisNormAttrs& a) {
  const AxisNormAttrs moved{a.axis + 1, a.eps};
  if (!c.batched(1) && !c.batched(2))
    return {make<Op>(c.graph, moved, Values(c.operands.begin(), c.operands.end()))};
  const Expr hat = make<Op>(c.graph, moved, {lifted(c, 0)});
  return {batched_affine(c, hat, 1, moved.axis)};
}

}  // namespace

Exprs LayerNorm::vjp(const Vjp& c, const Attrs& a) {
  Exprs out(size_t(c.count()));
  if (c.wants(0)) {
    out[0] = layer_norm_backward_input(c.in(0), gamma_or_ones(c, a.axis), c.dy(), a.axis, a.eps);
  }
  if (c.wants(1)) out[1] = layer_norm_backward_gamma(c.in(0), c.dy(), {}, a.axis, a.eps);
  if (c.wants(2)) out[2] = sum_onto_axis(c.dy(), a.axis);
  return out;
}

Exprs LayerNorm::vmap(const Vmap& c, const Attrs& a) { return vmap_axis_norm<LayerNorm>(c, a); }

Exprs RmsNorm::vjp(const Vjp& c, const Attrs& a) {
  Exprs out(size_t(c.count()));
  const Expr x = c.in(0), gamma = gamma_or_ones(c, a.axis), dy = c.dy();
  if (c.wants(0)) out[0] = rms_norm_backward_input(x, gamma, gamma, dy, a.axis, a.eps);
  if (c.wants(1)) out[1] = rms_norm_backward_gamma(x, gamma, gamma, dy, a.axis, a.eps);
  if (c.wants(2)) out[2] = sum_onto_axis(dy, a.axis);
  return out;
}

Exprs RmsNorm::vmap(const Vmap& c, const Attrs& a) { return vmap_axis_norm<RmsNorm>(c, a); }

Shapes LayerNorm2d::infer(Infer& c, Attrs& a) {
  c.require_rank(0, 4);
  AxisNormAttrs over_channels{1, a.eps};
  return detail::infer_axis_norm(c, over_channels);
}

Exprs LayerNorm2d::decompose(const Lower& c, const Attrs& a) {
  return {make<LayerNorm>(c.graph, {1, a.eps}, Values(c.operands.begin(), c.operands.end()))};
}

std::vector<OpSample<LayerNorm2d::Attrs>> LayerNorm2d::samples() {
  return {{{1e-6}, {"f32[2,5,2,3]", "f32[5]", "f32[5]"}},
          {{1e-3}, {"f64[1,3,1,2]", "f64[3]"}},
          {{1e-5}, {"f32[1,4,2,1]"}},
          {{1e-5}, {"f32[0,2,1,1]", "f32[2]", "f32[2]"}},
          {{0.5}, {"f16[1,1,1,1]", "f16[1]", "f16[1]"}}};
}

Expr layer_norm(Expr x, Expr gamma, Expr beta, int axis, double eps) {
  return make<LayerNorm>(*x.graph, {axis, eps}, with_parameters(x, gamma, beta, LayerNorm::name));
}
Expr rms_norm(Expr x, Expr gamma, Expr beta, int axis, double eps) {
  return make<RmsNorm>(*x.graph, {axis, eps}, with_parameters(x, gamma, beta, RmsNorm::name));
}
Expr layer_norm2d(Expr x, Expr gamma, Expr beta, double eps) {
  return make<LayerNorm2d>(*x.graph, {eps}, with_parameters(x, gamma, beta, LayerNorm2d::name));
}

}  // namespace rlx::ops
