// Products of one input: the text before and after, and both run.
#include "rlx/passes/join_products.h"

#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

void expect_joined(std::string_view before_text, std::string_view after_text, size_t products) {
  const ir::Graph before = graph(before_text);
  const ir::Rewritten after = join_products(before);
  EXPECT_TRUE(after.graph.verify().empty());
  EXPECT_EQ(after.graph, graph(after_text)) << cat(after.graph);
  EXPECT_EQ(after.changes, products);
  const Literals leaves = test::sample_leaves(before);
  test::expect_close(ir::interpret(after.graph, leaves), ir::interpret(before, leaves), 0);
}

TEST(JoinProducts, weights_and_biases_stand_side_by_side) {
  expect_joined(
      R"(graph @g(x: f32[2,3,4], param wq: f32[4,6], param bq: f32[6], param wk: f32[4,2], param bk: f32[2]) {
    a = matmul(x, wq)
    q = add(a, bq)
    b = matmul(x, wk)
    k = add(bk, b)
    s = reduce(k, axes=[2], keep_dim=true)
    h = reshape(q, shape=(2,3,2,3))
    return h, s
  })",
      R"(graph @g(x: f32[2,3,4], param wq: f32[4,6], param bq: f32[6], param wk: f32[4,2], param bk: f32[2]) {
    w = concat(wq, wk, axis=1)
    m = matmul(x, w)
    b = concat(bq, bk, axis=0)
    wide = add(m, b)
    q = narrow(wide, axis=2, start=0, len=6)
    k = narrow(wide, axis=2, start=6, len=2)
    s = reduce(k, axes=[2], keep_dim=true)
    h = reshape(q, shape=(2,3,2,3))
    return h, s
  })",
      2);
}

// Matrices that files hold as [out, in] are turned one by one, each in front of its product; joined, they are turned once.
TEST(JoinProducts, turned_weights_are_joined_as_they_lie) {
  expect_joined(R"(graph @g(x: f32[3,4], param a: f32[5,4], param b: f32[5,4]) {
    at = transpose(a, perm=[1,0])
    k = matmul(x, at)
    bt = transpose(b, perm=[1,0])
    v = matmul(x, bt)
    kt = transpose(k, perm=[1,0])
    return kt, v
  })",
                R"(graph @g(x: f32[3,4], param a: f32[5,4], param b: f32[5,4]) {
    w = concat(a, b, axis=0)
    t = transpose(w, perm=[1,0])
    m = matmul(x, t)
    k = narrow(m, axis=1, start=0, len=5)
    v = narrow(m, axis=1, start=5, len=5)
    kt = transpose(k, perm=[1,0])
    return kt, v
  })",
                2);
}

TEST(JoinProducts, plain_products_of_weights_that_are_computed) {
  expect_joined(R"(graph @g(x: f32[3,4], param a: f32[4,5], param b: f32[5,4]) {
    k = matmul(x, a)
    bt = transpose(b, perm=[1,0])
    v = matmul(x, bt)
    kt = transpose(k, perm=[1,0])
    return kt, v
  })",
                R"(graph @g(x: f32[3,4], param a: f32[4,5], param b: f32[5,4]) {
    bt = transpose(b, perm=[1,0])
    w = concat(a, bt, axis=1)
    m = matmul(x, w)
    k = narrow(m, axis=1, start=0, len=5)
    v = narrow(m, axis=1, start=5, len=5)
    kt = transpose(k, perm=[1,0])
    return kt, v
  })",
                2);
}

TEST(JoinProducts, other_inputs_and_weights_of_the_run_stay_apart) {
  const ir::Graph g =
      graph(R"(graph @g(x: f32[3,4], z: f32[3,4], v: f32[4,2], param w: f32[4,2], param u: f32[4,2]) {
    a = matmul(x, w)
    b = matmul(z, u)
    c = matmul(x, v)
    d = add(a, b)
    y = add(d, c)
    return y
  })");
  EXPECT_EQ(join_products(g).changes, 0u);
}

TEST(JoinProducts, what_becomes_an_epilogue_stays_alone) {
  const ir::Graph g = graph(R"(graph @g(x: f32[3,4], param w: f32[4,2], param u: f32[4,2]) {
    gate = matmul(x, w)
    up = matmul(x, u)
    s = silu(gate)
    y = mul(s, up)
    return y
  })");
  EXPECT_EQ(join_products(g).changes, 0u);
}

}  // namespace
}  // namespace rlx::passes
