#include "rlx/ops/reduce/any_all.h"

#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {
namespace {

Shapes infer_condition(Infer& c, ConditionAttrs& a) {
  if (c.in(0).dtype() != DType::bool_)
    c.fail("x: ", c.in(0), " has dtype ", c.in(0).dtype(), "; it must be bool; compare it with 0");
  return {reduced_type(c, a.axes, a.keep_dim)};
}

// As bytes: the empty maximum of u8 is 0 and the empty minimum 255, false and true.
Expr by_bytes(Expr x, ReduceOp kind, const ConditionAttrs& a) {
  return cast(reduce(cast(x, DType::u8), kind, a.axes, a.keep_dim), DType::bool_);
}

std::vector<OpSample<ConditionAttrs>> condition_samples() {
  return {{{{-1}, false}, {"bool[4,3]"}}, {{{0, 2}, true}, {"bool[2,3,2]"}}, {{{}, false}, {"bool[2,2]"}},
          {{{}, false}, {"bool[]"}},      {{{0}, false}, {"bool[1]"}},       {{{1}, false}, {"bool[2,0]"}}};
}

}  // namespace

Shapes AnyOf::infer(Infer& c, Attrs& a) { return infer_condition(c, a); }
Exprs AnyOf::decompose(const Lower& c, const Attrs& a) { return {by_bytes(c.in(0), ReduceOp::max, a)}; }
Exprs AnyOf::vmap(const Vmap& c, const Attrs& a) {
  const auto [x, axes] = reduced_batch(c, a.axes);
  return {any(x, axes, a.keep_dim && !a.axes.empty())};
}
std::vector<OpSample<ConditionAttrs>> AnyOf::samples() { return condition_samples(); }

Shapes AllOf::infer(Infer& c, Attrs& a) { return infer_condition(c, a); }
Exprs AllOf::decompose(const Lower& c, const Attrs& a) { return {by_bytes(c.in(0), ReduceOp::min, a)}; }
Exprs AllOf::vmap(const Vmap& c, const Attrs& a) {
  const auto [x, axes] = reduced_batch(c, a.axes);
  return {all(x, axes, a.keep_dim && !a.axes.empty())};
}
std::vector<OpSample<ConditionAttrs>> AllOf::samples() { return condition_samples(); }

Expr any(Expr x, std::vector<int> axes, bool keep_dim) {
  return make<AnyOf>(*x.graph, {std::move(axes), keep_dim}, {x});
}
Expr all(Expr x, std::vector<int> axes, bool keep_dim) {
  return make<AllOf>(*x.graph, {std::move(axes), keep_dim}, {x});
}

}  // namespace rlx::ops
