// Values and gradients of graphs with a symbolic size equal those of the same graph with the number.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"

namespace rlx::ops {
namespace {

using Build = std::function<Expr(Expr x, Dim n)>;

// x: f64[n,3], indices: i64[n] below n.
void expect_same_for_symbol(const Build& build) {
  constexpr int64_t kSize = 5;
  const Literals leaves{ir::sample_literal("f64[5,3] distinct", 1), ir::sample_literal("i64[5] <5", 2)};
  const auto run = [&](Dim n) {
    Graph g;
    const Expr x{&g, g.input("x", Shape(DType::f64, {n, 3}))};
    g.input("indices", Shape(DType::i64, {n}));
    const Expr y = build(x, n);
    g.set_outputs({reduce_sum(y * y, {})});
    const Graph joint = transform::value_and_grad(g, {"x"});
    EXPECT_TRUE(joint.verify().empty());
    return interpret(joint, leaves);
  };
  test::expect_close(run(Dim::seq()), run(kSize), 1e-12);
}

Expr indices_of(Expr x) { return {x.graph, x.graph->value(*x.graph->find_leaf("indices"))}; }

TEST(SymbolicOps, boxes) {
  expect_same_for_symbol([](Expr x, Dim n) { return pad(x, {n, 1}, {0, 2}, 1.5); });
  expect_same_for_symbol([](Expr x, Dim n) { return slice(x, {1, 0}, {n, 3}); });
  expect_same_for_symbol([](Expr x, Dim n) { return slice(x, {1, 0}, {n, 3}, {2, 2}); });
  expect_same_for_symbol([](Expr x, Dim n) { return slice(x, {0, 0}, {n - Dim(1), 2}, {3, 1}); });
  expect_same_for_symbol([](Expr x, Dim) { return flip(x, {0}) * x; });
}

TEST(SymbolicOps, boxes_at_run_time) {
  expect_same_for_symbol(
      [](Expr x, Dim n) { return dynamic_slice(x, narrow(indices_of(x), 0, 0, 2), {n - Dim(2), 1}); });
  expect_same_for_symbol([](Expr x, Dim n) {
    return dynamic_update_slice(x, slice(x, {2, 0}, {n, 2}), narrow(indices_of(x), 0, 1, 2));
  });
}

TEST(SymbolicOps, indexing) {
  expect_same_for_symbol([](Expr x, Dim) { return gather(x, indices_of(x), 0); });
  expect_same_for_symbol([](Expr x, Dim n) { return scatter_add(x, indices_of(x), n); });
  expect_same_for_symbol([](Expr x, Dim) { return scatter(x, indices_of(x), x * 3.0, ScatterKind::set); });
  expect_same_for_symbol([](Expr x, Dim) { return scatter(x, indices_of(x), x * 3.0, ScatterKind::max); });
  expect_same_for_symbol([](Expr x, Dim) { return take_along(x, argsort(x, 0), 0); });
  expect_same_for_symbol([](Expr x, Dim n) { return matmul(one_hot(indices_of(x), n, -1, DType::f64), x); });
}

TEST(SymbolicOps, ordering_and_reductions) {
  expect_same_for_symbol([](Expr x, Dim) { return sort(x, 0, true)[0] * x; });
  expect_same_for_symbol([](Expr x, Dim) { return top_k(x, 2, 0)[0]; });
  expect_same_for_symbol([](Expr x, Dim) { return cummax(x, 0)[0] * x; });
  expect_same_for_symbol([](Expr x, Dim) { return softmax(x, 0); });
  expect_same_for_symbol([](Expr x, Dim) { return log_softmax(x, 0); });
  expect_same_for_symbol([](Expr x, Dim) { return logsumexp(x, {0}); });
  expect_same_for_symbol([](Expr x, Dim) { return variance(x, {0}, true, 1); });
  expect_same_for_symbol([](Expr x, Dim) {
    const Expr one = cast(scalar_like(x, 1), DType::i64);
    return dropout(x, one, one, 0.4);
  });
}

// A batch of places, each example its own: the batch size stays a symbol.
TEST(SymbolicOps, batches_of_run_time_boxes) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[4]"))}, at{&g, g.input("at", parse_shape("i64[1]"))};
  const Expr box = dynamic_slice(x, at, {2});
  g.set_outputs({box, dynamic_update_slice(x, box * 10.0, at)});
  const Graph mapped = transform::vmap(g, {.in_axes = {{"at", 0}}, .size = Dim::batch()});
  const Literals leaves{Literal::of<double>({4}, {1, 2, 3, 4}), Literal::of<int64_t>({3, 1}, {0, 2, 9})};
  const Literals y = interpret(mapped, leaves);
  EXPECT_EQ(y[0], Literal::of<double>({3, 2}, {1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(y[1], Literal::of<double>({3, 4}, {10, 20, 3, 4, 1, 2, 30, 40, 1, 2, 30, 40}));
}

TEST(StopGradient, passes_no_derivative) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[]"))};
  g.set_outputs({x * stop_gradient(x)});
  const Literals at{Literal::of<double>({}, {3})}, with_tangent{at[0], Literal::of<double>({}, {1})};
  EXPECT_EQ(interpret(transform::grad(g, {"x"}), at)[0], Literal::of<double>({}, {3}));
  EXPECT_EQ(interpret(transform::jvp(g, {"x"}), with_tangent)[1], Literal::of<double>({}, {3}));
}

TEST(Softmax, gradients_stay_finite_with_masked_entries) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[3]"))};
  g.set_outputs({logsumexp(x, {0}) + reduce_sum(square(softmax(x)), {})});
  const Literals at{Literal::of<double>({3}, {0, -INFINITY, 0})};
  test::expect_close(interpret(transform::grad(g, {"x"}), at)[0], Literal::of<double>({3}, {0.5, 0, 0.5}),
                     1e-12);
}

}  // namespace
}  // namespace rlx::ops
