#include "rlx/ops/norm/group_norm.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/norm/normalize.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

constexpr int kChannels = 1;
const std::vector<int> kGroupAxes{2};  // of the grouped form

void check_groups(Infer& c, int64_t num_groups, double eps) {
  c.require_float(0);
  c.require_min_rank(0, 2);
  check_eps(c, eps);
  if (num_groups < 1) c.fail("num_groups ", num_groups, " must be 1 or more");
  const Dim channels = c.in(0).dim(kChannels), rest = mod(channels, num_groups);
  if (decide_equal(rest, 0) == false) {
    c.fail("x: ", c.in(0), " has ", channels, " channels, not divisible by num_groups ", num_groups);
  }
  c.same(rest, 0, "channels modulo num_groups and 0");
}

// [N, C, ..] as [N, groups, all elements of a group].
Expr grouped(Expr x, int64_t groups) {
  const Dim channels = x.dim(kChannels);
  const auto exact = exact_div(channels, groups);
  Dim size = exact ? *exact : floordiv(channels, groups);
  for (int i = 2; i < x.rank(); ++i) size = size * x.dim(i);
  return reshape(x, {x.dim(0), groups, size});
}

Expr normalized(Expr x, int64_t groups, double eps) {
  return reshape(normalize(grouped(x, groups), kGroupAxes, eps, true).hat, x.shape().dims());
}

}  // namespace

Shapes GroupNorm::infer(Infer& c, Attrs& a) {
  check_groups(c, a.num_groups, a.eps);
  check_axis_vector(c, 1, c.in(0), kChannels);
  check_axis_vector(c, 2, c.in(0), kChannels);
  return {c.in(0)};
}

Exprs GroupNorm::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  Expr y = normalized(widened(x), a.num_groups, a.eps);
  if (c.has(1)) y = y * on_axis(widened(c.in(1)), kChannels, x.rank());
  if (c.has(2)) y = y + on_axis(widened(c.in(2)), kChannels, x.rank());
  return {cast(y, x.dtype())};
}

Exprs GroupNorm::vjp(const Vjp& c, const Attrs& a) {
  Exprs out(size_t(c.count()));
  const Expr x = c.in(0), dy = c.dy();
  if (c.wants(0)) {
    const Expr gamma = c.count() > 1 ? c.in(1) : full(c.graph, Shape(x.dtype(), {x.dim(kChannels)}), 1);
    out[0] = group_norm_backward_input(x, gamma, gamma, dy, a.num_groups, a.eps);
  }
  if (c.wants(1)) out[1] = group_norm_backward_gamma(x, dy, {}, a.num_groups, a.eps);
  if (c.wants(2)) out[2] = group_norm_backward_beta(x, dy, {}, a.num_groups, a.eps);
  return out;
}

// The batch joins N; batched parameters are applied behind the operator.
Exprs GroupNorm::vmap(const Vmap& c, const Attrs& a) {
  const Expr x = joined(c, 0);
  Dims dims = x.shape().dims();
  dims[0] = c.in(0).dim(c.batched(0) ? 1 : 0);
  dims.insert(dims.begin(), c.size);
  Values in{x};
  const bool shared = !c.batched(1) && !c.batched(2);
  for (int i = 1; i < c.count() && shared; ++i) in.push_back(c.in(i));
  const Expr y = reshape(make<GroupNorm>(c.graph, a, in), dims);
  return {shared ? y : batched_affine(c, y, 1, kChannels + 1)};
}

std::vector<OpSample<GroupNormAttrs>> GroupNorm::samples() {
  return {{{3, 1e-5}, {"f32[2,6,2,2]", "f32[6]", "f32[6]"}},
          {{1, 1e-3}, {"f64[2,3,4]", "f64[3]"}},
          {{2, 1e-5}, {"f32[1,4,3,1,2]"}},
          {{2, 0.5}, {"f32[3,2]", "f32[2]", "f32[2]"}},
          {{2, 1e-5}, {"f32[0,4,2]", "f32[4]", "f32[4]"}},
          {{1, 0.5}, {"f16[1,1,1,1]", "f16[1]", "f16[1]"}},
          {{5, 1e-2}, {"bf16[1,5,3]", "bf16[5]", "bf16[5]"}}};
}

Shapes GroupNormBackwardInput::infer(Infer& c, Attrs& a) {
  check_groups(c, a.num_groups, a.eps);
  check_axis_vector(c, 1, c.in(0), kChannels);
  check_axis_vector(c, 2, c.in(0), kChannels);
  check_gradient(c, 3);
  return {c.in(0)};
}

Exprs GroupNormBackwardInput::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const Expr g = widened(c.in(3)) * on_axis(widened(c.in(1)), kChannels, x.rank());
  const Normalized n = normalize(grouped(widened(x), a.num_groups), kGroupAxes, a.eps, true);
  const Expr dx = normalize_gradient(n, grouped(g, a.num_groups), kGroupAxes, true);
  return {cast(reshape(dx, x.shape().dims()), x.dtype())};
}

std::vector<OpSample<GroupNormAttrs>> GroupNormBackwardInput::samples() {
  return {{{3, 1e-5}, {"f32[2,6,2,2]", "f32[6]", "f32[6]", "f32[2,6,2,2]"}},
          {{1, 1e-3}, {"f64[2,3,4]", "f64[3]", "f64[3]", "f64[2,3,4]"}},
          {{2, 0.5}, {"f32[3,2]", "f32[2]", "f32[2]", "f32[3,2]"}},
          {{2, 1e-5}, {"f32[0,4,2]", "f32[4]", "f32[4]", "f32[0,4,2]"}},
          {{1, 0.5}, {"f16[1,1,1,1]", "f16[1]", "f16[1]", "f16[1,1,1,1]"}}};
}

namespace detail {

Shapes infer_group_parameter(Infer& c, GroupNormParameterAttrs& a) {
  check_groups(c, a.num_groups, a.eps);
  check_gradient(c, 1);
  const Dim size = c.in(0).dim(kChannels);
  if (a.shape.empty()) a.shape = {size};
  if (a.shape.size() != 1 || decide_equal(a.shape[0], size) == false)
    c.fail("shape ", a.shape, " must be [", size, "], the channels of x: ", c.in(0));
  c.same(a.shape[0], size, "sizes");
  return {c.in(0).with_dims(a.shape)};
}

std::vector<OpSample<GroupNormParameterAttrs>> group_parameter_samples() {
  return {{{{}, 3, 1e-5}, {"f32[2,6,2,2]", "f32[2,6,2,2]"}},
          {{{3}, 1, 1e-3}, {"f64[2,3,4]", "f64[2,3,4]"}},
          {{{}, 2, 0.5}, {"f32[3,2]", "f32[3,2]"}},
          {{{}, 2, 1e-5}, {"f32[0,4,2]", "f32[0,4,2]"}},
          {{{}, 1, 0.5}, {"f16[1,1,1,1]", "f16[1,1,1,1]"}}};
}

}  // namespace detail

Exprs GroupNormBackwardGamma::decompose(const Lower& c, const Attrs& a) {
  const Expr hat = normalized(widened(c.in(0)), a.num_groups, a.eps);
  return {cast(sum_onto_axis(widened(c.in(1)) * hat, kChannels), c.in(0).dtype())};
}
Exprs GroupNormBackwardBeta::decompose(const Lower& c, const Attrs&) {
  return {cast(sum_onto_axis(widened(c.in(1)), kChannels), c.in(0).dtype())};
}

Expr group_norm(Expr x, Expr gamma, Expr beta, int64_t num_groups, double eps) {
  return make<GroupNorm>(*x.graph, {num_groups, eps}, with_parameters(x, gamma, beta, GroupNorm::name));
}
Expr group_norm_backward_input(Expr x, Expr gamma, Expr beta, Expr dy, int64_t num_groups, double eps) {
  return make<GroupNormBackwardInput>(*x.graph, {num_groups, eps}, {x, gamma, beta, dy});
}
Expr group_norm_backward_gamma(Expr x, Expr dy, Dims shape, int64_t num_groups, double eps) {
  return make<GroupNormBackwardGamma>(*x.graph, {std::move(shape), num_groups, eps}, {x, dy});
}
Expr group_norm_backward_beta(Expr x, Expr dy, Dims shape, int64_t num_groups, double eps) {
  return make<GroupNormBackwardBeta>(*x.graph, {std::move(shape), num_groups, eps}, {x, dy});
}

}  // namespace rlx::ops
