#include "rlx/ops/control/fused.h"

#include <gtest/gtest.h>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"

namespace rlx::ops {
namespace {

// y = silu(x) g and its row sums, as one node.
constexpr std::string_view kText = R"(graph @main(x: f32[2,3], g: f32[3]) {
  y:2 = fused(x, g, body=graph @body(x0: f32[2,3], x1: f32[3]) {
    %2 = silu(x0) : f32[2,3]
    %3 = mul(%2, x1) : f32[2,3]
    %4 = reduce(%3, axes=[1]) : f32[2]
    return %3, %4
  }) : f32[2,3], f32[2]
  return y, y#1
}
)";

TEST(Fused, prints_and_parses_with_its_body) {
  const Graph g = ir::parse_graph(kText, table());
  EXPECT_EQ(ir::parse_graph(ir::to_text(g), table()), g);
  EXPECT_TRUE(g.verify().empty());
}

TEST(Fused, has_the_values_of_its_body_to_the_bit) {
  const Graph g = ir::parse_graph(kText, table());
  const Graph& body = *g.node(g.outputs()[0]).as<Fused>().body;
  const Literals in = {Literal::of<float>({2, 3}, {0.1f, -2, 3, 0.7f, 5, -0.3f}),
                       Literal::of<float>({3}, {1.5f, -1, 0.3f})};
  EXPECT_EQ(ir::interpret(g, in), ir::interpret(body, in));
}

// A value that the body rounds to bf16 is rounded in the node too: nothing is computed wider because it is fused.
TEST(Fused, keeps_the_roundings_inside_its_body) {
  Graph body("body");
  const Expr x{&body, body.input("x", parse_shape("bf16[1]"))};
  const Expr y = make<Mul>(body, {}, {make<Mul>(body, {}, {x, x}), x});
  body.set_outputs({y});
  Graph g;
  const Expr in{&g, g.input("x", parse_shape("bf16[1]"))};
  g.set_outputs({fused(g, {in}, body)[0]});
  const Literals v = {Literal::full(parse_shape("bf16[1]"), 1.0078125)};
  EXPECT_EQ(ir::interpret(g, v), ir::interpret(body, v));
}

TEST(Fused, decomposes_into_its_body) {
  const Graph g = ir::parse_graph(kText, table());
  const Node& n = g.node(g.outputs()[0]);
  Graph flat = g;
  const Values operands = n.inputs;
  const Exprs out = n.op->decompose({flat, operands, n.shapes}, n.attrs.get());
  flat.set_outputs({out[0], out[1]});
  flat.erase_dead();
  EXPECT_EQ(flat.len(), 5u);
  const Literals in = {Literal::full(parse_shape("f32[2,3]"), 0.5), Literal::full(parse_shape("f32[3]"), 2)};
  EXPECT_EQ(ir::interpret(flat, in), ir::interpret(g, in));
}

}  // namespace
}  // namespace rlx::ops
