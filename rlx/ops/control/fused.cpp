#include "rlx/ops/control/fused.h"

#include "rlx/ops/control/body.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {

Shapes Fused::infer(Infer& c, Attrs& a) {
  check_body(c, a.body, "body", Shapes(c.in().begin(), c.in().end()));
  const Shapes out = output_shapes(*a.body);
  if (out.empty()) c.fail("body has no outputs");
  return out;
}

// The body as it stands, each operator with its own rounding: that a part is fused changes no value.
Literals Fused::reference(const Eval& c, const Attrs& a) { return c.run(a.body, c.operands); }

Exprs Fused::decompose(const Lower& c, const Attrs& a) {
  Exprs in;
  for (int i = 0; i < c.count(); ++i) in.push_back(c.in(i));
  return inline_graph(c.graph, *a.body, in);
}

std::vector<OpSample<Fused::Attrs>> Fused::samples() {
  const auto body = [](const std::vector<std::string_view>& types, auto build) -> GraphRef {
    Shapes shapes;
    for (const std::string_view t : types) shapes.push_back(parse_shape(t));
    return make_body("body", shapes, [&](Graph&, const Exprs& x) { return build(x); });
  };
  return {{{body({"f32[3,4]", "f32[4]"}, [](const Exprs& x) { return Exprs{gelu(x[0] + x[1])}; })},
           {"f32[3,4]", "f32[4]"}},
          {{body({"f64[5]", "f64[5]"}, [](const Exprs& x) { return Exprs{silu(x[0]) * x[1], exp(x[0])}; })},
           {"f64[5]", "f64[5]"}},
          {{body({"f32[2,6]"},
                 [](const Exprs& x) {
                   const Expr e = exp(x[0] - reduce_mean(x[0], {1}, true));
                   return Exprs{e / reduce_sum(e, {1}, true), reduce_sum(e, {1})};
                 })},
           {"f32[2,6]"}},
          {{body({"f32[4]", "f32[]"},
                 [](const Exprs& x) { return Exprs{where(greater(x[0], x[1]), x[0], x[1])}; })},
           {"f32[4] distinct", "f32[]"}},
          {{body({"f32[0,3]"}, [](const Exprs& x) { return Exprs{tanh(x[0])}; })}, {"f32[0,3]"}},
          {{body({"i32[5]", "i32[1]"}, [](const Exprs& x) { return Exprs{x[0] * x[1] + x[0]}; })},
           {"i32[5]", "i32[1]"}}};
}

Exprs fused(Graph& g, const Exprs& operands, Graph body) {
  return make_all<Fused>(g, {std::make_shared<const Graph>(std::move(body))},
                         Values(operands.begin(), operands.end()));
}

}  // namespace rlx::ops
