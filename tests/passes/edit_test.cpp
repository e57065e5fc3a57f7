// Nodes replaced in the graph itself.
#include "rlx/passes/edit.h"

#include <gtest/gtest.h>

#include "rlx/ir/text.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/passes/cse.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

// exp(x) becomes sin(x) + x.
std::optional<ir::Values> replace_exp(ir::Graph& g, const ir::Node& n) {
  if (!n.is<ops::Exp>()) return std::nullopt;
  const ir::Expr x{&g, n.inputs[0]};
  return ir::Values{ops::add(ops::sin(x), x)};
}

TEST(Edit, puts_new_nodes_in_front_of_those_that_read_them) {
  const ir::Rewritten after = edit(graph(R"(graph @g(x: f32[3]) {
    a = exp(x)
    b = neg(a)
    y = exp(b)
    return y, a
  })"),
                                   replace_exp);
  EXPECT_EQ(after.changes, 2u);
  EXPECT_TRUE(after.graph.verify().empty());
  EXPECT_EQ(after.graph, graph(R"(graph @g(x: f32[3]) {
    s = sin(x)
    a = add(s, x)
    b = neg(a)
    t = sin(b)
    y = add(t, b)
    return y, a
  })"))
      << cat(after.graph);
}

TEST(Edit, keeps_the_names_of_outputs) {
  const auto to_operand = [](ir::Graph&, const ir::Node& n) -> std::optional<ir::Values> {
    return n.is<ops::Exp>() ? std::optional(ir::Values{n.inputs[0]}) : std::nullopt;
  };
  const ir::Graph before = graph("graph @g(x: f32[3]) { y = exp(x) z = exp(y) return z, y }");
  const ir::Rewritten after = edit(before, to_operand);
  EXPECT_EQ(after.graph.output_names(), before.output_names());
  EXPECT_EQ(after.graph.len(), 1u);
  EXPECT_TRUE(after.graph.verify().empty());
}

TEST(Edit, changes_bodies_once_and_leaves_the_given_ones) {
  const ir::Graph before = graph(R"(graph @g(x: f32[3]) {
    y = custom_fn(x, fwd_body=graph @f(a: f32[3]) { c = exp(a) return c })
    z = custom_fn(y, fwd_body=graph @h(a: f32[3]) { c = neg(a) return c })
    return z
  })");
  const std::string text = cat(before);
  const ir::Rewritten after = edit(before, replace_exp);
  EXPECT_EQ(after.changes, 1u);
  EXPECT_TRUE(after.graph.verify().empty());
  EXPECT_EQ(cat(before), text);
  EXPECT_NE(cat(after.graph), text);
  EXPECT_EQ(cat(after.graph).find("exp("), std::string::npos) << cat(after.graph);
}

TEST(Edit, leaves_a_graph_without_changes_as_it_was) {
  ir::Graph g = graph("graph @g(x: f32[3]) { a = sin(x) y = neg(a) return y }");
  const ir::Node* first = g.nodes()[1];
  const ir::Rewritten after = edit(std::move(g), replace_exp);
  EXPECT_EQ(after.changes, 0u);
  EXPECT_EQ(after.graph.nodes()[1], first);  // the same node, not a copy
}

TEST(Edit, merges_nodes_with_several_results) {
  const ir::Rewritten after = cse(graph(R"(graph @g(x: f32[4]) {
    p:2 = top_k(x, k=2)
    q:2 = top_k(x, k=2)
    y = add(p, q)
    z = add(p#1, q#1)
    return y, z
  })"));
  EXPECT_EQ(after.changes, 1u);
  EXPECT_TRUE(after.graph.verify().empty());
  EXPECT_EQ(after.graph.len(), 4u);
}

}  // namespace
}  // namespace rlx::passes
