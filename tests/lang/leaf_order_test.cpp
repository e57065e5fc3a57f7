// Leaves stand in the order in which the program names them, whatever order C++ evaluates operands in.
#include <gtest/gtest.h>

#include "rlx/ir/leaves.h"
#include "rlx/lang/trace.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

std::string leaves_of(const ir::Graph& g) {
  std::string out;
  for (const NodeId id : g.leaves()) out += cat(out.empty() ? "" : " ", g.node(id).name);
  return out;
}

Literal scalar(double v) { return Literal::scalar(DType::f32, v); }

TEST(LeafOrder, operands_of_one_expression_stand_as_they_are_written) {
  const Graph body = trace("body", [](Tracer& t) { return t.input("carry", {}) - t.input("step", {}); });
  EXPECT_EQ(leaves_of(body), "carry step");
  const Graph g = trace("f", [&](Tracer& t) {
    const Tensor x = t.input("x", {}), s = t.input("s", {});
    return t.wrap(t.graph().scan_with_bcasts_and_xs(x, {s}, {}, body, 1));
  });
  EXPECT_EQ(g.interpret({{"x", scalar(10)}, {"s", scalar(1)}}).begin()->second.real_at(0), 9);
}

TEST(LeafOrder, arguments_of_one_call_stand_as_they_are_written) {
  Graph g("g");
  const Shape s(DType::f32, {});
  g.set_outputs({g.sub(g.mul(g.input("a", s), g.input("b", s)), g.sub(g.param("c", s), g.input("d", s)))});
  EXPECT_EQ(leaves_of(g), "a b c d");
  EXPECT_EQ(ir::interpret(g, Literals{scalar(2), scalar(3), scalar(5), scalar(4)})[0].real_at(0), 5);
  EXPECT_TRUE(g.verify().empty());
}

TEST(LeafOrder, an_expression_over_several_lines_too) {
  const Graph g = trace("ffn", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), 4});
    return (x.matmul(t.param("w", {4, 8})) + t.param("b", {8})).gelu().matmul(t.param("w2", {8, 2})) -
           t.param("b2", {2});
  });
  EXPECT_EQ(leaves_of(g), "x w b w2 b2");
}

TEST(LeafOrder, text_json_and_files_keep_it) {
  const Graph g = trace("f", [](Tracer& t) { return t.input("carry", {}) - t.input("step", {}); });
  EXPECT_EQ(leaves_of(Graph::parse(g.to_text())), "carry step");
  EXPECT_EQ(leaves_of(Graph::from_json(g.to_json())), "carry step");
  EXPECT_TRUE(Graph::parse(g.to_text()) == g);
  const test::Scratch scratch;
  g.save(scratch.path("g"));
  EXPECT_EQ(leaves_of(Graph::load(scratch.path("g"))), "carry step");
  EXPECT_EQ(leaves_of(Graph(g)), "carry step");
}

TEST(LeafOrder, statements_and_loops_keep_the_order_made) {
  Graph g("g");
  const Shape s(DType::f32, {});
  for (int i = 0; i < 3; ++i) {
    g.input(cat("a", i), s);
    g.input(cat("b", i), s);
  }
  EXPECT_EQ(leaves_of(g), "a0 b0 a1 b1 a2 b2");
}

TEST(LeafOrder, operands_of_a_helper_called_again_and_again_stand_as_they_are_written) {
  const Graph g = trace("mlp", [](Tracer& t) {
    const auto layer = [&t](const Tensor& x, const std::string& name) {
      return x.matmul(t.param(name + ".w", {4, 4})) + t.param(name + ".b", {4});
    };
    Tensor h = t.input("x", {2, 4});
    for (int i = 0; i < 3; ++i) h = layer(h, cat("layer", i)).relu();
    return layer(h, "last");
  });
  EXPECT_EQ(leaves_of(g), "x layer0.w layer0.b layer1.w layer1.b layer2.w layer2.b last.w last.b");
  EXPECT_TRUE(g.verify().empty());
}

TEST(LeafOrder, a_helper_keeps_the_order_of_its_calls) {
  Graph g("g");
  const auto leaf = [&](const std::string& name) { return g.input(name, Shape(DType::f32, {})); };
  const Value z = leaf("z"), a = leaf("a");
  g.set_outputs({g.add(z, a), g.input("last", Shape(DType::f32, {}))});
  EXPECT_EQ(leaves_of(g), "z a last");
}

}  // namespace
}  // namespace rlx
