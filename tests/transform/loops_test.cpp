#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/transform/checkpoints.h"
#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_values;
using test::f64;
using test::graph;
using ops::operator*;

// x -> sin(x) * 1.1, `length` times, plain or with checkpoints.
ir::Graph repeated(int64_t length, int64_t checkpoints) {
  ir::Graph g("repeated");
  const ir::Expr x{&g, g.input("x", Shape(DType::f64, {4}))};
  ir::Graph body("step");
  const ir::Expr c{&body, body.input("c", Shape(DType::f64, {4}))};
  body.set_outputs({ops::sin(c) * 1.1});
  const ir::Expr y = checkpoints ? ops::scan_checkpointed(x, std::move(body), length, checkpoints)
                                 : ops::scan(x, std::move(body), length);
  g.set_outputs({ops::reduce_sum(y, {0})}, {"loss"});
  return g;
}

TEST(Loops, checkpoints_change_no_bit_of_value_or_gradient) {
  const ir::NamedLiterals in{{"x", f64({4}, {0.3, 1, 2, 3})}};
  const auto plain = ir::interpret(transform::value_and_grad(repeated(23, 0), {"x"}), in);
  for (const int64_t k : {1, 4, 5, 22, 23, 40}) {
    const auto kept = ir::interpret(transform::value_and_grad(repeated(23, k), {"x"}), in);
    EXPECT_TRUE(kept.at("loss") == plain.at("loss")) << k;
    EXPECT_TRUE(kept.at("d_x") == plain.at("d_x")) << k;
  }
}

int64_t peak_bytes(const ir::Graph& g, const Literals& in) {
  ir::Interpreter interpreter;
  interpreter.run(g, in);
  return interpreter.stats().peak_bytes;
}

TEST(Loops, checkpoints_cut_the_memory_of_the_gradient) {
  const Literals in{f64({4}, {0.3, 1, 2, 3})};
  const int64_t plain = peak_bytes(transform::grad(repeated(10000, 0), {"x"}), in);
  const int64_t kept = peak_bytes(transform::grad(repeated(10000, 100), {"x"}), in);
  EXPECT_LE(kept * 40, plain) << kept << " against " << plain;
}

ir::Graph step_body() {
  ir::Graph body("step");
  const ir::Expr c{&body, body.input("c", Shape(DType::f64, {4}))};
  body.set_outputs({ops::sin(c) * 1.1});
  return body;
}

TEST(Loops, the_memory_of_the_gradient_is_known_beforehand) {
  const Literals in{f64({4}, {0.3, 1, 2, 3})};
  for (const int64_t k : {int64_t(0), int64_t(10), int64_t(100)}) {
    const auto stated = double(transform::scan_memory(step_body(), 1, 10000, k).bytes);
    EXPECT_NEAR(double(peak_bytes(transform::grad(repeated(10000, k), {"x"}), in)), stated, 0.05 * stated)
        << k;
  }
}

TEST(Loops, a_memory_budget_chooses_the_checkpoints) {
  EXPECT_EQ(transform::fit_scan(step_body(), 1, 100, 1 << 20).checkpoints, 0);
  const auto fitted = transform::fit_scan(step_body(), 1, 10000, 10000);
  EXPECT_GT(fitted.checkpoints, 0);
  EXPECT_LE(fitted.bytes, 10000);
  ir::Graph g("within");
  const ir::Expr x{&g, g.input("x", Shape(DType::f64, {4}))};
  g.set_outputs({ops::reduce_sum(transform::scan_within(g, {x}, {}, {}, step_body(), 10000, 10000)[0], {0})},
                {"loss"});
  EXPECT_LE(peak_bytes(transform::grad(g, {"x"}), {f64({4}, {0.3, 1, 2, 3})}), 10500);
  EXPECT_EQ(
      test::error_of([] { transform::fit_scan(step_body(), 1, 10000, 100); }),
      "scan: the gradient of 10000 steps needs at least 6400 bytes (100 checkpoints); the budget is 100");
}

TEST(Loops, the_size_of_the_gradient_graph_does_not_depend_on_the_length) {
  EXPECT_EQ(transform::grad(repeated(10, 0), {"x"}).len(),
            transform::grad(repeated(1'000'000, 0), {"x"}).len());
}

TEST(Loops, each_forward_step_runs_once_when_residuals_are_kept) {
  ir::Interpreter interpreter;
  interpreter.run(transform::value_and_grad(repeated(50, 0), {"x"}), Literals{f64({4}, {0.3, 1, 2, 3})});
  EXPECT_EQ(interpreter.stats().runs_of_op.at("sin"), 50);
}

const char* kRnn = R"(graph(h: f64[2], w: f64[2,2], xs: f64[5,2], unused: f64[5]) {
  h1 = reshape(h, shape=(1, 2))
  r:2 = scan(h1, w, xs, unused, length=5, carries=1, consts=1,
    body=graph(c: f64[1,2], w: f64[2,2], x: f64[2], u: f64[]) {
      n = tanh(add(matmul(c, w), x))
      return n, reduce(n)
    })
  return r, r#1
})";

TEST(Loops, constants_sequences_outputs_and_unused_inputs_have_gradients) {
  const auto g = graph(kRnn);
  Literals leaves;
  for (const auto id : g.leaves()) leaves.push_back(test::random_like(g.node(id).shapes[0], id + 5));
  test::DerivativeCheck(g, leaves, true).run();
  const auto d = transform::grad(g, {"unused"});
  Literals in = leaves;
  in.push_back(test::random_like(parse_shape("f64[1,2]"), 1));
  in.push_back(test::random_like(parse_shape("f64[5]"), 2));
  expect_values(ir::interpret(d, in)[0], {0, 0, 0, 0, 0});
}

// A matrix that never changes is not stacked, neither as it is nor turned, and what crosses the loop is stacked once: of a step the state
// before it and what tanh gave.
TEST(Loops, views_are_made_again_in_the_sweep) {
  const auto g = graph(R"(graph(h: f64[3,4], w: f64[4,4]) {
    y = scan(h, w, length=7, carries=1, consts=1, body=graph(c: f64[3,4], w: f64[4,4]) { return tanh(matmul(c, w)) })
    return y
  })");
  const auto d = transform::grad(g, {"h", "w"});
  int loops = 0;
  for (const ir::Node* n : d.nodes()) {
    if (!n->is<ops::Scan>() || loops++ > 0) continue;
    ASSERT_EQ(n->shapes.size(), 3u);  // the last state; stacked
    for (size_t i = 1; i < 3; ++i) EXPECT_EQ(cat(n->shapes[i]), "f64[7,3,4]");
  }
  EXPECT_EQ(loops, 2);
  Literals leaves;
  for (const auto id : g.leaves()) leaves.push_back(test::random_like(g.node(id).shapes[0], id + 3));
  test::DerivativeCheck(g, leaves, true).run();
}

TEST(Loops, loops_nest) {
  const auto g = graph(R"(graph(x: f64[3]) {
    y = scan(x, length=3, carries=1, body=graph(a: f64[3]) {
      b = scan(a, length=2, carries=1, body=graph(c: f64[3]) { return sin(mul(c, c)) })
      return add(a, b)
    })
    return y
  })");
  test::DerivativeCheck(g, {f64({3}, {0.1, 0.7, 1.3})}, true).run();
}

TEST(Loops, vmap_of_grad_of_a_loop_is_the_gradient_of_each_example) {
  const auto g = repeated(6, 0);
  const auto per_example = transform::grad(g, {"x"});
  const auto mapped = transform::vmap(per_example, {.in_axes = {{"x", 0}}, .size = 3});
  const Literal xs = test::random_like(parse_shape("f64[3,4]"), 9);
  const auto got = ir::interpret(mapped, Literals{xs})[0];
  for (int64_t k = 0; k < 3; ++k) {
    std::vector<double> row;
    for (int64_t i = 0; i < 4; ++i) row.push_back(xs.real_at(4 * k + i));
    const auto want = ir::interpret(per_example, Literals{f64({4}, row)})[0];
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(got.real_at(4 * k + i), want.real_at(i), 1e-12);
  }
}

TEST(Loops, a_branch_runs_and_differentiates_only_the_side_taken) {
  // The other side divides by zero; its NaN must not appear.
  const auto g = graph(R"(graph(p: bool[], x: f64[2]) {
    y = if(p, x, then_body=graph(a: f64[2]) { return mul(a, a) },
                 else_body=graph(a: f64[2]) { return log(sub(a, a)) })
    return reduce(y)
  })");
  const auto d = transform::value_and_grad(g, {"x"});
  ir::Interpreter interpreter;
  const auto out = interpreter.run(d, Literals{Literal::of<bool>({}, {true}), f64({2}, {3, 4})});
  expect_values(out[0], {25});
  expect_values(out[1], {6, 8});
  EXPECT_EQ(interpreter.stats().runs_of_op.count("log"), 0u);
}

TEST(Loops, a_bounded_while_differentiates_with_a_trip_count_from_the_data) {
  const auto g = graph(R"(graph(x: f64[]) {
    y = while(x, carries=1, max_iterations=8,
      cond=graph(c: f64[]) { return compare(c, full(shape=f64[], value=100.0), kind=lt) },
      body=graph(c: f64[]) { return mul(c, c) })
    return y
  })");
  const auto d = transform::value_and_grad(g, {"x"});
  const auto at = [&](double x) { return ir::interpret(d, {{"x", f64(x)}}); };
  expect_values(at(3).at("d_x"), {8 * std::pow(3.0, 7)});  // 3 -> 9 -> 81 -> 6561
  expect_values(at(200).at("d_x"), {1});                   // no step at all
}

TEST(Loops, overrides_of_custom_functions_hold_in_both_modes_and_in_batches) {
  // The forward is x^2; the overrides claim other slopes, so we can see who was asked.
  const auto g = graph(R"(graph(x: f64[2]) {
    y = custom_fn(x, fwd_body=graph @f(x: f64[2]) { return mul(x, x) },
      vjp_body=graph @b(x: f64[2], primal_output: f64[2], d_output: f64[2]) { return mul(d_output, sin(x)) },
      jvp_body=graph @j(x: f64[2], tangent_0: f64[2]) { return mul(tangent_0, cos(x)) })
    return y
  })");
  const Literal x = f64({2}, {0.5, 2}), one = f64({2}, {1, 1});
  expect_values(ir::interpret(transform::grad(g, {"x"}), Literals{x, one})[0],
                {std::sin(0.5), std::sin(2.0)});
  expect_values(ir::interpret(transform::jvp(g, {"x"}), Literals{x, one})[1], {std::cos(0.5), std::cos(2.0)});
  const auto mapped =
      transform::vmap(transform::grad(g, {"x"}), {.in_axes = {{"x", 0}, {"d_output", 0}}, .size = 1});
  expect_values(ir::interpret(mapped, Literals{x.reshaped({1, 2}), one.reshaped({1, 2})})[0],
                {std::sin(0.5), std::sin(2.0)});
  // Batch first, differentiate then: the override is still the one asked.
  const auto other = transform::grad(transform::vmap(g, {.in_axes = {{"x", 0}}, .size = 1}), {"x"});
  expect_values(ir::interpret(other, Literals{x.reshaped({1, 2}), one.reshaped({1, 2})})[0],
                {std::sin(0.5), std::sin(2.0)});
}

}  // namespace
}  // namespace rlx
