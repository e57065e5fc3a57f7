// Passes that move nodes: out of loops, and to another place in the order.
#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "rlx/passes/hoist.h"
#include "rlx/passes/schedule.h"
#include "tests/support/graphs.h"
#include "tests/support/random_program.h"

namespace rlx::passes {
namespace {

using test::graph;

TEST(HoistInvariants, takes_what_depends_on_constants_out_of_a_scan) {
  const ir::Graph before = graph(R"(graph @g(c: f32[2,2], w: f32[2,2], xs: f32[3,2]) {
    r = scan(c, w, xs, body=graph @step(c: f32[2,2], w: f32[2,2], x: f32[2]) {
      t = transpose(w, perm=[1,0])
      s = mul(t, w)
      h = matmul(c, s)
      n = add(h, x)
      return n
    }, length=3, carries=1, consts=1)
    return r
  })");
  const ir::Rewritten after = hoist_invariants(before);
  EXPECT_EQ(after.changes, 1u);
  EXPECT_EQ(after.graph, graph(R"(graph @g(c: f32[2,2], w: f32[2,2], xs: f32[3,2]) {
    t = transpose(w, perm=[1,0])
    s = mul(t, w)
    r = scan(c, w, s, xs, body=graph @step(c: f32[2,2], w: f32[2,2], invariant0: f32[2,2], x: f32[2]) {
      h = matmul(c, invariant0)
      n = add(h, x)
      return n
    }, length=3, carries=1, consts=2)
    return r
  })"))
      << cat(after.graph);
  test::expect_close(ir::interpret(after.graph, test::sample_leaves(before)),
                     ir::interpret(before, test::sample_leaves(before)), 0);
}

TEST(HoistInvariants, takes_it_out_of_a_while_and_leaves_the_condition) {
  const ir::Graph before = graph(R"(graph @g(i: i32[], z: f32[4], w: f32[4]) {
    r:2 = while(i, z, w, cond=graph @more(i: i32[], z: f32[4], w: f32[4]) {
      n = constant(value=i32[]{3})
      p = compare(i, n, kind=lt)
      return p
    }, body=graph @step(i: i32[], z: f32[4], w: f32[4]) {
      one = constant(value=i32[]{1})
      j = add(i, one)
      e = exp(w)
      y = mul(z, e)
      return j, y
    }, carries=2)
    return r, r#1
  })");
  const ir::Rewritten after = hoist_invariants(before);
  EXPECT_EQ(after.changes, 1u) << cat(after.graph);
  EXPECT_TRUE(after.graph.verify().empty());
  int outside = 0;
  for (const ir::Node* n : after.graph.nodes()) outside += n->op->name == "exp";
  EXPECT_EQ(outside, 1);
  for (const int32_t start : {0, 3, 9}) {  // several steps, and none
    Literals in = test::sample_leaves(before);
    in[0] = Literal::of<int32_t>({}, {start});
    test::expect_close(ir::interpret(after.graph, in), ir::interpret(before, in), 0);
  }
}

TEST(HoistInvariants, leaves_what_changes_what_grows_and_what_may_refuse) {
  const ir::Graph g = graph(R"(graph @g(c: f32[4,4], w: f32[4], m: f32[4,4], xs: f32[3,4]) {
    r = scan(c, w, m, xs, body=graph @step(c: f32[4,4], w: f32[4], m: f32[4,4], x: f32[4]) {
      wide = expand(w, shape=(4,4))
      l = cholesky(m)
      a = add(c, x)
      b = add(a, wide)
      n = add(b, l)
      return n
    }, length=3, carries=1, consts=2)
    return r
  })");
  EXPECT_EQ(hoist_invariants(g).changes, 0u);
}

// A loop may run no step at all: then nobody asks for an expert that is not there.
TEST(HoistInvariants, leaves_products_that_pick_their_matrices) {
  const ir::Graph before = graph(R"(graph @g(go: bool[], c: f32[2,4], x: f32[2,4], w: f32[3,4,4], e: i32[2]) {
    r:2 = while(go, c, x, w, e, cond=graph @more(go: bool[], c: f32[2,4], x: f32[2,4], w: f32[3,4,4], e: i32[2]) {
      return go
    }, body=graph @step(go: bool[], c: f32[2,4], x: f32[2,4], w: f32[3,4,4], e: i32[2]) {
      y = grouped_matmul(x, w, e)
      n = add(c, y)
      return go, n
    }, carries=2)
    return r#1
  })");
  const ir::Graph after = hoist_invariants(before).graph;
  EXPECT_EQ(after, before) << cat(after);
  Literals leaves = test::sample_leaves(before);
  leaves[0] = Literal::scalar(DType::bool_, 0);
  leaves[4] = Literal::of<int32_t>({2}, {0, 3});
  EXPECT_EQ(ir::interpret(after, leaves), ir::interpret(before, leaves));
}

TEST(HoistInvariants, gives_equal_numbers_on_random_programs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const test::RandomProgram p(seed, 18);
    const ir::Graph after = hoist_invariants(p.graph()).graph;
    ASSERT_TRUE(after.verify().empty()) << seed;
    test::expect_close(ir::interpret(after, p.leaves()), ir::interpret(p.graph(), p.leaves()), 0);
  }
}

TEST(Schedule, brings_readers_to_what_they_free) {
  const ir::Graph before = graph(R"(graph @g(x: f32[64], y: f32[64]) {
    a = exp(x)
    b = exp(y)
    s = reduce(a, kind=sum, axes=[0])
    t = reduce(b, kind=sum, axes=[0])
    z = add(s, t)
    return z
  })");
  const Scheduled after = schedule(before);
  EXPECT_EQ(after.bytes_before, 2 * 256 + 4);
  EXPECT_EQ(after.bytes_after, 256 + 4 + 4);
  EXPECT_EQ(peak_bytes(after.graph), after.bytes_after);
  test::expect_close(ir::interpret(after.graph, test::sample_leaves(before)),
                     ir::interpret(before, test::sample_leaves(before)), 0);
}

TEST(Schedule, counts_views_as_what_they_view) {
  const ir::Graph g = graph(R"(graph @g(x: f32[64]) {
    a = exp(x)
    v = reshape(a, shape=(8,8))
    b = neg(v)
    return b
  })");
  EXPECT_EQ(peak_bytes(g), 512);
}

std::vector<std::string> names_in_order(const ir::Graph& g) {
  std::vector<std::string> out;
  for (const ir::Node* n : g.nodes()) out.push_back(n->name);
  return out;
}

TEST(Schedule, lets_the_update_of_a_state_wait_for_readers_of_the_old_one) {
  const ir::Graph before = graph(R"(graph @g(x: f32[64], s: f32[64]) {
    next = add(s, x)
    v = reshape(s, shape=(8,8))
    y = reduce(v, kind=sum, axes=[0])
    return y, next
  })");
  const StateUpdate state{before.node(*before.find_leaf("s")).result(), before.outputs()[1]};
  const Scheduled after = schedule(before, {&state, 1});
  EXPECT_EQ(names_in_order(after.graph), (std::vector<std::string>{"x", "s", "v", "y", "next"}));
  EXPECT_EQ(early_updates(before, {&state, 1}), 1);
  test::expect_close(ir::interpret(after.graph, test::sample_leaves(before)),
                     ir::interpret(before, test::sample_leaves(before)), 0);
}

TEST(Schedule, of_states_that_need_each_other_ends) {
  const ir::Graph g = graph(R"(graph @g(a: f32[64], b: f32[64]) {
    p = exp(b)
    q = exp(a)
    return p, q
  })");
  const StateUpdate states[] = {{g.node(*g.find_leaf("a")).result(), g.outputs()[0]},
                                {g.node(*g.find_leaf("b")).result(), g.outputs()[1]}};
  EXPECT_EQ(early_updates(schedule(g, states).graph, {}), 0);
  EXPECT_EQ(schedule(g, states).graph.len(), g.len());
}

TEST(Schedule, never_needs_more_and_keeps_numbers_and_leaves) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const test::RandomProgram p(seed, 25);
    const Scheduled after = schedule(p.graph());
    EXPECT_LE(after.bytes_after, after.bytes_before);
    EXPECT_EQ(peak_bytes(after.graph), after.bytes_after);
    ASSERT_TRUE(after.graph.verify().empty()) << seed;
    test::expect_close(ir::interpret(after.graph, p.leaves()), ir::interpret(p.graph(), p.leaves()), 0);
  }
}

}  // namespace
}  // namespace rlx::passes
