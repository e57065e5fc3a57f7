#include "rlx/ops/quant/fake_quantize_lsq.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/quant/fake_quantize.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

std::vector<OpSample<LsqAttrs>> backward_samples() {
  return {{{8, {}}, {"f32[3,4]", "f32[1] positive", "f32[3,4]"}},
          {{4, 1}, {"f64[2,3]", "f64[3] unit", "f64[2,3]"}},
          {{2, -1}, {"f32[2,2,3]", "f32[3] unit", "f32[2,2,3]"}},
          {{4, {}}, {"f32[0,3]", "f32[1] positive", "f32[0,3]"}},
          {{8, 0}, {"f16[1]", "f16[1] positive", "f16[1]"}}};
}

Expr inside(Expr z, double top) { return compare(CompareOp::le, abs(z), scalar_like(z, top)); }

}  // namespace

Shapes FakeQuantizeLsq::infer(Infer& c, Attrs& a) {
  c.same_dtype({0, 1});
  c.require_float(0);
  top_code(c, a.bits);
  require_scales(c, 1, a.axis);
  return {c.in(0)};
}

// With zc the clamped z, y = (zc + held(round(zc) - zc)) s: its derivatives are those of the doc.
Exprs FakeQuantizeLsq::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), s = spread_scales(c.in(1), x, a.axis), z = x / s;
  const double top = top_code(a.bits);
  const Expr clamped = where(inside(z, top), z, top * sign(z));
  return {(clamped + stop_gradient(round(clamped) - clamped)) * s};
}

std::vector<OpSample<LsqAttrs>> FakeQuantizeLsq::samples() {
  return {{{8, {}}, {"f32[3,4]", "f32[1] positive"}}, {{4, 1}, {"f64[2,3]", "f64[3] unit"}},
          {{2, -1}, {"f32[2,2,3]", "f32[3] unit"}},   {{4, {}}, {"f32[0,3]", "f32[1] positive"}},
          {{8, 0}, {"f16[1]", "f16[1] positive"}},    {{2, {}}, {"bf16[5]", "bf16[1] unit"}}};
}

Shapes FakeQuantizeLsqBackwardX::infer(Infer& c, Attrs& a) {
  return {infer_rounding_gradient(c, a.bits, a.axis)[0]};
}
Exprs FakeQuantizeLsqBackwardX::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), z = x / spread_scales(c.in(1), x, a.axis);
  return {where(inside(z, top_code(a.bits)), c.in(2), scalar_like(x, 0))};
}
std::vector<OpSample<LsqAttrs>> FakeQuantizeLsqBackwardX::samples() { return backward_samples(); }

Shapes FakeQuantizeLsqBackwardScale::infer(Infer& c, Attrs& a) {
  return {infer_rounding_gradient(c, a.bits, a.axis)[1]};
}
Exprs FakeQuantizeLsqBackwardScale::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), z = x / spread_scales(c.in(1), x, a.axis);
  const double top = top_code(a.bits);
  const Expr per_element = c.in(2) * where(inside(z, top), round(z) - z, top * sign(z));
  const std::vector<int> axes = shared_axes(x.rank(), a.axis);
  return {reshape(axes.empty() ? per_element : reduce_sum(per_element, axes), c.out().dims())};
}
std::vector<OpSample<LsqAttrs>> FakeQuantizeLsqBackwardScale::samples() { return backward_samples(); }

Expr fake_quantize_lsq(Expr x, Expr scale, int bits, std::optional<int> axis) {
  return make<FakeQuantizeLsq>(*x.graph, {bits, axis}, {x, scale});
}
Expr fake_quantize_lsq_backward_x(Expr x, Expr scale, Expr dy, int bits, std::optional<int> axis) {
  return make<FakeQuantizeLsqBackwardX>(*x.graph, {bits, axis}, {x, scale, dy});
}
Expr fake_quantize_lsq_backward_scale(Expr x, Expr scale, Expr dy, int bits, std::optional<int> axis) {
  return make<FakeQuantizeLsqBackwardScale>(*x.graph, {bits, axis}, {x, scale, dy});
}

}  // namespace rlx::ops
