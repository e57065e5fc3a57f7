#include "rlx/ops/reduce/variance.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {

Shapes Variance::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  if (!(a.correction >= 0)) c.fail("correction is ", a.correction, "; it must not be negative");
  return {reduced_type(c, a.axes, a.keep_dim)};
}

Exprs Variance::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const Expr count = max(count_like(x, a.axes) - a.correction, scalar_like(x, 0));
  return {reduce_sum(square(x - reduce_mean(x, a.axes, true)), a.axes, a.keep_dim) / count};
}

Exprs Variance::vmap(const Vmap& c, const Attrs& a) {
  const auto [x, axes] = reduced_batch(c, a.axes);
  return {variance(x, axes, a.keep_dim && !a.axes.empty(), a.correction)};
}

std::vector<OpSample<Variance::Attrs>> Variance::samples() {
  return {{{{-1}, false, 0}, {"f32[4,5]"}}, {{{0, 2}, true, 1}, {"f64[2,3,4]"}},
          {{{}, false, 0.5}, {"f32[2,3]"}}, {{{}, false, 0}, {"f32[]"}},
          {{{0}, false, 0}, {"f16[1]"}},    {{{1}, true, 1}, {"f32[0,3]"}}};
}

Expr variance(Expr x, std::vector<int> axes, bool keep_dim, double correction) {
  return make<Variance>(*x.graph, {std::move(axes), keep_dim, correction}, {x});
}

}  // namespace rlx::ops
