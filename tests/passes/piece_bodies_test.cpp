// Pieces that do the same share a body; others do not.
#include "rlx/passes/piece_bodies.h"

#include <gtest/gtest.h>

#include <set>

#include "rlx/ir/text.h"
#include "rlx/ops/control/fused.h"
#include "rlx/passes/fuse.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

/// Takes everything, and counts how often it is asked.
struct CountingTarget final : ir::Target {
  std::string_view name() const override { return "counting"; }
  ir::Support accepts(const ir::Node&, std::span<const Shape>, std::span<const ir::Layout>,
                      std::span<const ir::Layout>) const override {
    ++asked;
    return ir::Support::yes();
  }
  mutable int asked = 0;
};

/// Different bodies among the `fused` nodes of a graph that was fused; also checks what it computes.
size_t bodies_of(std::string_view text, const CountingTarget& target, size_t pieces) {
  const ir::Graph before = graph(text);
  const Fused fused = fuse(before, target);
  EXPECT_EQ(fused.pieces, pieces);
  EXPECT_TRUE(fused.graph.verify().empty());
  std::set<const ir::Graph*> bodies;
  for (const ir::Node* n : fused.graph.nodes()) {
    if (n->is<ops::Fused>()) bodies.insert(n->as<ops::Fused>().body.get());
  }
  const Literals leaves = test::sample_leaves(before);
  test::expect_close(ir::interpret(fused.graph, leaves), ir::interpret(before, leaves), 0);
  return bodies.size();
}

TEST(PieceBodies, are_shared_by_pieces_that_do_the_same) {
  const CountingTarget target;
  EXPECT_EQ(bodies_of(R"(graph @g(a: f32[4], b: f32[4], c: f32[4]) {
    return add(exp(a), mul(a, b)), add(exp(b), mul(b, c)), add(exp(c), mul(c, a))
  })",
                      target, 3),
            1u);
  EXPECT_EQ(target.asked, 1);
}

TEST(PieceBodies, tell_wiring_types_attributes_fills_and_results_apart) {
  const CountingTarget target;
  // sub(exp(a), b) and sub(a, exp(b)); the same on other types; other constants.
  EXPECT_EQ(bodies_of(R"(graph @g(a: f32[4], b: f32[4], c: f32[5], d: f32[5]) {
    return sub(exp(a), b), sub(a, exp(b)), sub(exp(c), d),
           mul(exp(a), full(shape=f32[4], value=2.0)), mul(exp(b), full(shape=f32[4], value=3.0))
  })",
                      target, 5),
            5u);
  // The same operators, but of one an inner value is a result, too.
  EXPECT_EQ(bodies_of(R"(graph @g(a: f32[4], b: f32[4]) {
    e = exp(a)
    return neg(e), e, neg(exp(b))
  })",
                      target, 2),
            2u);
  // One operand twice is not two operands.
  EXPECT_EQ(bodies_of("graph @g(a: f32[4], b: f32[4]) { return exp(add(a, a)), exp(add(a, b)) }", target, 2),
            2u);
}

}  // namespace
}  // namespace rlx::passes
