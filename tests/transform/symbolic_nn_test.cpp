// Convolutions, pooling and norms with symbolic sizes give the values and gradients of the same graph with
// the numbers.
#include <gtest/gtest.h>

#include <functional>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"

namespace rlx::ops {
namespace {

using Build = std::function<Expr(Expr x, Expr w)>;

// x: f64[n,4,s], w of a static type.
void expect_same_for_symbols(std::string_view weight, const Build& build) {
  const Literals leaves{ir::sample_literal("f64[3,4,7] distinct", 1), ir::sample_literal(weight, 2)};
  const auto run = [&](Dim n, Dim s) {
    Graph g;
    const Expr x{&g, g.input("x", Shape(DType::f64, {n, 4, s}))};
    const Expr w{&g, g.input("w", leaves[1].shape())};
    const Expr y = build(x, w);
    g.set_outputs({reduce_sum(y * y, {})});
    const Graph joint = transform::value_and_grad(g, {"x", "w"});
    EXPECT_TRUE(joint.verify().empty());
    return interpret(joint, leaves);
  };
  test::expect_close(run(Dim::batch(), Dim::seq()), run(3, 7), 1e-12);
}

TEST(SymbolicNetworks, convolutions) {
  expect_same_for_symbols("f64[2,4,3]", [](Expr x, Expr w) { return conv1d(x, w, {3}, {2}, {1}, {2}); });
  expect_same_for_symbols("f64[6,2,2]",
                          [](Expr x, Expr w) { return conv1d(x, w, {2}, {3}, {0, 1}, {1}, 2); });
  expect_same_for_symbols("f64[4,3,3]",
                          [](Expr x, Expr w) { return conv_transpose1d(x, w, {3}, {2}, {1}, {1}, {1}); });
}

TEST(SymbolicNetworks, pooling_and_resizing) {
  for (const ReduceOp kind : {ReduceOp::max, ReduceOp::mean, ReduceOp::prod}) {
    expect_same_for_symbols("f64[1]", [&](Expr x, Expr w) { return pool(x, kind, {3}, {2}, {1}) * w; });
  }
  expect_same_for_symbols("f64[1]",
                          [](Expr x, Expr w) { return resize_scaled(x, ResizeMode::linear, 2) * w; });
}

TEST(SymbolicNetworks, norms) {
  expect_same_for_symbols("f64[4]", [](Expr x, Expr w) { return layer_norm(x, w, w, 1, 1e-3); });
  expect_same_for_symbols("f64[4]", [](Expr x, Expr w) { return rms_norm(x, w, {}, 1, 1e-3); });
  expect_same_for_symbols("f64[4]", [](Expr x, Expr w) { return group_norm(x, w, w, 2, 1e-3); });
  expect_same_for_symbols("f64[1]", [](Expr x, Expr w) { return layer_norm(x, {}, {}, -1, 1e-3) * w; });
}

TEST(SymbolicNetworks, a_batch_of_kernels_of_unknown_number) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[2,4,5]"))};
  const Expr w{&g, g.input("w", parse_shape("f64[2,2,3]"))};
  g.set_outputs({conv1d(x, w, {}, {}, {}, {}, 2)});
  const Graph mapped =
      transform::vmap(g, {.in_axes = {{"x", 0}, {"w", 0}}, .out_axes = {0}, .size = Dim::rows()});
  EXPECT_EQ(cat(mapped.shape(mapped.outputs()[0])), "f64[rows,2,2,3]");
  const Literals in{ir::sample_literal("f64[3,2,4,5]", 1), ir::sample_literal("f64[3,2,2,3]", 2)};
  const Graph fixed = transform::vmap(g, {.in_axes = {{"x", 0}, {"w", 0}}, .out_axes = {0}, .size = 3});
  test::expect_close(interpret(mapped, in), interpret(fixed, in), 1e-14);
}

}  // namespace
}  // namespace rlx::ops
