#include "rlx/ops/quant/fake_quantize.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

constexpr double kSmallestScale = 1e-12;

// Divided as the scale was: the element that a scale is made of lies within, which top * s may round away.
Expr within(Expr x, Expr s, double top) { return compare(CompareOp::le, abs(x) / top, s); }

// A function of x whose derivative is the factor of the straight-through rule; its values do not matter.
Expr stand_in(Expr x, Expr s, double top, SteKind ste) {
  const Expr zero = scalar_like(x, 0);
  switch (ste) {
    case SteKind::identity:
      return x;
    case SteKind::clipped:
      return where(within(x, s, top), x, zero);
    case SteKind::tanh:
      return s * tanh(x / s);
    case SteKind::hard_tanh:
      return where(within(x, s, top), x - x * abs(x) / (2.0 * top * s), zero);
  }
  return x;
}

Expr floored(Expr scale) { return max(scale, scalar_like(scale, kSmallestScale)); }

}  // namespace

double top_code(int bits) { return bits == 8 ? 127 : bits == 4 ? 7 : bits == 2 ? 1 : 0; }

double top_code(const Infer& c, int bits) {
  if (top_code(bits) == 0) c.fail("bits ", bits, " is not supported; 8, 4 or 2");
  return top_code(bits);
}

Shape require_scales(Infer& c, int operand, std::optional<int>& axis) {
  const Shape& x = c.in(0);
  if (axis) axis = c.axis(*axis, 0);
  const Dim channels = axis ? x.dim(*axis) : Dim(1);
  const Shape want(x.dtype(), {channels});
  if (operand >= c.count()) return want;
  const Shape& given = c.in(operand);
  if (given.dtype() != x.dtype() || given.rank() != 1 || decide_equal(given.dim(0), channels) == false)
    c.fail(c.operand_name(operand), ": ", given, " does not fit x: ", x, "; it must be ", want);
  c.same(given.dim(0), channels, "scales and channels");
  return want;
}

Shapes infer_rounding_gradient(Infer& c, int bits, std::optional<int>& axis) {
  c.same_dtype({0, 1, 2});
  c.require_float(0);
  top_code(c, bits);
  const Shape scales = require_scales(c, 1, axis);
  if (c.in(0).rank() != c.in(2).rank()) c.fail("shapes differ, x: ", c.in(0), " and dy: ", c.in(2));
  for (int i = 0; i < c.in(0).rank(); ++i) c.same(c.in(0).dim(i), c.in(2).dim(i), "sizes of x and dy");
  return {c.in(0), scales};
}

Expr spread_scales(Expr scale, Expr x, std::optional<int> axis) {
  return axis ? reshape(scale, channel_dims(x.rank(), *axis, x.dim(*axis))) : reshape(scale, {});
}

std::vector<int> shared_axes(int rank, std::optional<int> axis) {
  std::vector<int> out;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) out.push_back(i);
  }
  return out;
}

Shapes FakeQuantize::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  top_code(c, a.bits);
  if (a.scale_mode == ScaleMode::ema && !(a.decay >= 0 && a.decay <= 1))
    c.fail("decay ", a.decay, " must lie in 0 .. 1");
  const bool wants_state = a.scale_mode != ScaleMode::per_batch;
  if (wants_state != (c.count() == 2)) {
    c.fail(c.count() == 2 ? "a state is given" : "no state is given", ", but scale_mode ",
           choice_names(a.scale_mode)[size_t(a.scale_mode)], wants_state ? " needs one" : " has none");
  }
  return {c.in(0), require_scales(c, 1, a.axis)};
}

// The rounded value is held constant and a stand-in with the wanted derivative is added and taken away again,
// so every transform of this form carries the straight-through rule.
Exprs FakeQuantize::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const double top = top_code(a.bits);
  Expr scale;
  if (a.scale_mode == ScaleMode::fixed) {
    scale = c.in(1);
  } else {
    const std::vector<int> axes = shared_axes(x.rank(), a.axis);
    const Expr size = abs(stop_gradient(x));
    const Expr largest = axes.empty() ? size : reduce_max(size, axes);
    const Expr current = reshape(max(largest, scalar_like(x, 0)) / top, c.out(1).dims());
    scale = current;
    if (a.scale_mode == ScaleMode::ema) {
      const Expr state = c.in(1);
      const Expr blended = a.decay * state + (1 - a.decay) * current;
      scale = where(greater(state, scalar_like(state, 0)), blended, current);
    }
  }
  scale = stop_gradient(scale);
  const Expr s = spread_scales(floored(scale), x, a.axis);
  const Expr code = round(stop_gradient(x) / s), limit = scalar_like(x, top);
  const Expr clamped = max(min(code, limit), -limit);
  const Expr finite = less(abs(x), scalar_like(x, INFINITY));  // infinity - infinity would not be 0
  const Expr h = where(finite, stand_in(x, s, top, a.ste), scalar_like(x, 0));
  return {clamped * s + (h - stop_gradient(h)), scale};
}

std::vector<OpSample<FakeQuantize::Attrs>> FakeQuantize::samples() {
  using enum SteKind;
  using enum ScaleMode;
  return {{{8, {}, identity, per_batch}, {"f32[3,4]"}},
          {{4, 1, clipped, fixed}, {"f64[2,3]", "f64[3] positive"}},
          {{2, {}, SteKind::tanh, ema, 0.9}, {"f32[5]", "f32[1] positive"}},
          {{4, -1, hard_tanh, ema, 0.5}, {"f32[2,2,3]", "f32[3]"}},
          {{8, 0, hard_tanh, fixed}, {"f64[2,3]", "f64[2] unit"}},
          {{8, {}, identity, per_batch}, {"f32[0,3]"}},
          {{4, 0, SteKind::tanh, per_batch}, {"f16[1]"}},
          {{2, {}, clipped, per_batch}, {"bf16[]"}}};
}

Shapes FakeQuantizeBackward::infer(Infer& c, Attrs& a) {
  return {infer_rounding_gradient(c, a.bits, a.axis)[0]};
}

Exprs FakeQuantizeBackward::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), dy = c.in(2);
  const double top = top_code(a.bits);
  const Expr s = spread_scales(floored(c.in(1)), x, a.axis), zero = scalar_like(x, 0);
  switch (a.ste) {
    case SteKind::identity:
      return {dy};
    case SteKind::clipped:
      return {where(within(x, s, top), dy, zero)};
    case SteKind::tanh:
      return {dy * (1.0 - square(tanh(x / s)))};
    case SteKind::hard_tanh:
      return {dy * max(1.0 - abs(x) / (top * s), zero)};
  }
  return {dy};
}

std::vector<OpSample<FakeQuantizeBackward::Attrs>> FakeQuantizeBackward::samples() {
  using enum SteKind;
  return {{{8, {}, identity}, {"f32[3,4]", "f32[1] positive", "f32[3,4]"}},
          {{4, 1, clipped}, {"f64[2,3]", "f64[3] unit", "f64[2,3]"}},
          {{2, {}, SteKind::tanh}, {"f32[5]", "f32[1] positive", "f32[5]"}},
          {{4, -1, hard_tanh}, {"f32[2,2,3]", "f32[3] unit", "f32[2,2,3]"}},
          {{8, {}, clipped}, {"f32[0,3]", "f32[1] positive", "f32[0,3]"}},
          {{8, 0, SteKind::tanh}, {"f16[1]", "f16[1] positive", "f16[1]"}}};
}

FakeQuantizeResult fake_quantize(Expr x, Expr state, FakeQuantize::Attrs attrs) {
  Values operands{x};
  if (state) operands.push_back(state);
  const Exprs out = make_all<FakeQuantize>(*x.graph, attrs, operands);
  return {out[0], out[1]};
}

Expr fake_quantize_backward(Expr x, Expr scale, Expr dy, int bits, std::optional<int> axis, SteKind ste) {
  return make<FakeQuantizeBackward>(*x.graph, {bits, axis, ste}, {x, scale, dy});
}

}  // namespace rlx::ops
