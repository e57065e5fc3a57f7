#include "rlx/ops/reduce/softmax.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

Shapes infer_softmax(Infer& c, SoftmaxAttrs& a) {
  c.require_float(0);
  a.axis = c.axis(a.axis, 0);
  return {c.in(0)};
}

std::vector<OpSample<SoftmaxAttrs>> softmax_samples() {
  return {{{-1}, {"f32[4,5,3]"}}, {{0}, {"f32[3,2]"}}, {{1}, {"f64[2,4,3]"}}, {{0}, {"f16[7]"}},
          {{-1}, {"f32[2,0]"}},   {{0}, {"f32[1]"}},   {{-2}, {"bf16[3,5]"}}};
}

// x less its maximum. The result of softmax does not depend on what is taken out, hence the constant.
Expr centred(Expr x, int axis) { return x - stop_gradient(reduce_max(x, {axis}, true)); }

}  // namespace

Shapes Softmax::infer(Infer& c, Attrs& a) { return infer_softmax(c, a); }

Exprs Softmax::decompose(const Lower& c, const Attrs& a) {
  const Expr e = exp(centred(c.in(0), a.axis));
  return {e / reduce_sum(e, {a.axis}, true)};
}

Exprs Softmax::vjp(const Vjp& c, const Attrs& a) {
  const Expr y = c.out(), dy = c.dy();
  return {y * (dy - reduce_sum(y * dy, {a.axis}, true))};
}
Exprs Softmax::jvp(const Jvp& c, const Attrs& a) {
  const Expr y = c.out(), dx = c.dx(0);
  return {y * (dx - reduce_sum(y * dx, {a.axis}, true))};
}
Exprs Softmax::vmap(const Vmap& c, const Attrs& a) { return {softmax(c.in(0), a.axis + 1)}; }
std::vector<OpSample<SoftmaxAttrs>> Softmax::samples() { return softmax_samples(); }

Shapes LogSoftmax::infer(Infer& c, Attrs& a) { return infer_softmax(c, a); }

Exprs LogSoftmax::decompose(const Lower& c, const Attrs& a) {
  const Expr d = centred(c.in(0), a.axis);
  return {d - log(reduce_sum(exp(d), {a.axis}, true))};
}

Exprs LogSoftmax::vjp(const Vjp& c, const Attrs& a) {
  return {c.dy() - exp(c.out()) * reduce_sum(c.dy(), {a.axis}, true)};
}
Exprs LogSoftmax::jvp(const Jvp& c, const Attrs& a) {
  return {c.dx(0) - reduce_sum(exp(c.out()) * c.dx(0), {a.axis}, true)};
}
Exprs LogSoftmax::vmap(const Vmap& c, const Attrs& a) { return {log_softmax(c.in(0), a.axis + 1)}; }
std::vector<OpSample<SoftmaxAttrs>> LogSoftmax::samples() { return softmax_samples(); }

Shapes Logsumexp::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  return {reduced_type(c, a.axes, a.keep_dim)};
}

namespace {

// An infinite maximum is not taken out: e^(inf - inf) would be NaN where the sum is plainly 0 or inf.
Expr finite_or_zero(Expr t) { return where(is_finite(t), t, scalar_like(t, 0)); }

}  // namespace

Exprs Logsumexp::decompose(const Lower& c, const Attrs& a) {
  if (a.axes.empty()) return {c.in(0)};  // a scalar
  const Expr x = c.in(0), m = stop_gradient(finite_or_zero(reduce_max(x, a.axes, true)));
  const Expr y = log(reduce_sum(exp(x - m), a.axes, true)) + m;
  return {reshape(y, c.out().dims())};
}

Exprs Logsumexp::vjp(const Vjp& c, const Attrs& a) {
  const Expr y = finite_or_zero(keep_reduced(c.out(), a.axes, a.keep_dim));
  return {exp(c.in(0) - y) * keep_reduced(c.dy(), a.axes, a.keep_dim)};
}

Exprs Logsumexp::vmap(const Vmap& c, const Attrs& a) {
  const auto [x, axes] = reduced_batch(c, a.axes);
  return {logsumexp(x, axes, a.keep_dim && !a.axes.empty())};
}

std::vector<OpSample<Logsumexp::Attrs>> Logsumexp::samples() {
  return {{{{-1}, false}, {"f32[4,5]"}}, {{{0, 2}, true}, {"f64[2,3,4]"}}, {{{}, false}, {"f32[2,3]"}},
          {{{}, false}, {"f32[]"}},      {{{0}, false}, {"f16[1]"}},       {{{1}, true}, {"f32[0,3]"}}};
}

Expr softmax(Expr x, int axis) { return make<Softmax>(*x.graph, {axis}, {x}); }
Expr log_softmax(Expr x, int axis) { return make<LogSoftmax>(*x.graph, {axis}, {x}); }
Expr logsumexp(Expr x, std::vector<int> axes, bool keep_dim) {
  return make<Logsumexp>(*x.graph, {std::move(axes), keep_dim}, {x});
}

}  // namespace rlx::ops
