// Loops and branches over a batch of which each row goes its own way.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/transform/transform.h"
#include "tests/support/batches.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_values;
using test::f64;
using test::graph;
using test::i32;
using transform::grad;
using transform::vmap;

Literal bools(std::vector<bool> v) {
  Literal out = Literal::zeros(Shape(DType::bool_, {int64_t(v.size())}));
  for (size_t i = 0; i < v.size(); ++i) out.mutable_bytes()[i] = std::byte(v[i] ? 1 : 0);
  return out;
}

// Adds the entries of a table from place i on.
const char* kSumFrom = R"(graph(i: i32[], tab: f64[4]) {
  y:2 = while(i, full(shape=f64[], value=0.0), tab, carries=2, max_iterations=9,
    cond=graph(i: i32[], s: f64[], tab: f64[4]) { return compare(i, constant(value=i32[]{4}), kind=lt) },
    body=graph(i: i32[], s: f64[], tab: f64[4]) {
      return a=add(i, constant(value=i32[]{1})), b=add(s, gather(tab, i)) })
  return y=y#1
})";

TEST(BatchedWhile, rows_that_are_done_run_nothing) {
  const auto mapped = vmap(graph(kSumFrom), {.in_axes = {{"i", 0}}, .size = 4});
  const Literals in{i32({4}, {1, 3, 7, 0}), f64({4}, {0, 1, 2, 3})};
  expect_values(ir::interpret(mapped, in)[0], {6, 3, 0, 6});
}

TEST(BatchedWhile, differentiates_before_and_after_batching_alike) {
  const auto g = graph(kSumFrom);
  const Literal start = i32({4}, {1, 3, 7, 0}), table = f64({4}, {0, 1, 2, 3});
  const std::vector<double> want{0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1};
  expect_values(
      ir::interpret(vmap(grad(g, {"tab"}), {.in_axes = {{"i", 0}}, .size = 4}), Literals{start, table})[0],
      want);
  // Every row with a table of its own, so that the gradients stay apart.
  const auto other = grad(vmap(g, {.in_axes = {{"i", 0}, {"tab", 0}}, .size = 4}), {"tab"});
  const Literals in{start, test::stack({table, table, table, table}), f64({4}, {1, 1, 1, 1})};
  expect_values(ir::interpret(other, in)[0], want);
}

TEST(BatchedWhile, no_rows_is_no_step) {
  const auto mapped = vmap(graph(kSumFrom), {.in_axes = {{"i", 0}}, .size = 0});
  EXPECT_EQ(cat(ir::interpret(mapped, Literals{i32({0}, {}), f64({4}, {0, 1, 2, 3})})[0].shape()), "f64[0]");
}

TEST(BatchedWhile, a_counter_that_all_rows_share_stays_shared) {
  const auto g = graph(R"(graph(x: f64[]) {
    y:2 = while(constant(value=i32[]{0}), x, carries=2,
      cond=graph(i: i32[], z: f64[]) { return compare(i, constant(value=i32[]{3}), kind=lt) },
      body=graph(i: i32[], z: f64[]) { return a=add(i, constant(value=i32[]{1})), b=mul(z, z) })
    return n=y, z=y#1
  })");
  const auto mapped = vmap(g, {.in_axes = {{"x", 0}}, .out_axes = {std::nullopt, 0}, .size = 2});
  const auto out = ir::interpret(mapped, Literals{f64({2}, {1, 2})});
  EXPECT_EQ(cat(out[0]), "i32[]{3}");
  expect_values(out[1], {1, 256});
}

TEST(BatchedScan, a_counter_that_all_rows_share_stays_shared) {
  const auto g = graph(R"(graph(x: f64[]) {
    y:3 = scan(constant(value=i32[]{0}), x, length=3, carries=2, body=graph(i: i32[], z: f64[]) {
      return a=add(i, constant(value=i32[]{1})), b=mul(z, z), c=i })
    return n=y, z=y#1, steps=y#2
  })");
  const auto mapped =
      vmap(g, {.in_axes = {{"x", 0}}, .out_axes = {std::nullopt, 0, std::nullopt}, .size = 2});
  const auto out = ir::interpret(mapped, Literals{f64({2}, {1, 2})});
  EXPECT_EQ(cat(out[0]), "i32[]{3}");
  expect_values(out[1], {1, 256});
  EXPECT_EQ(cat(out[2]), "i32[3]{0, 1, 2}");
}

// A carry that another makes depend on the batch only in the second step.
TEST(BatchedScan, the_batch_spreads_from_carry_to_carry) {
  const auto g = graph(R"(graph(x: f64[]) {
    y:3 = scan(full(shape=f64[], value=1.0), full(shape=f64[], value=2.0), x, length=3, carries=3,
      body=graph(a: f64[], b: f64[], c: f64[]) { return p=b, q=c, r=c })
    return a=y, b=y#1, c=y#2
  })");
  const auto out = ir::interpret(vmap(g, {.in_axes = {{"x", 0}}, .size = 2}), Literals{f64({2}, {5, 7})});
  expect_values(out[0], {5, 7});
}

const char* kSolveOrSquare = R"(graph(p: bool[], a: f64[2,2], b: f64[2]) {
  y = if(p, a, b, then_body=graph(a: f64[2,2], b: f64[2]) { return batched_dense_solve(a, b) },
                  else_body=graph(a: f64[2,2], b: f64[2]) { return mul(b, b) })
  return reduce(y)
})";

TEST(BatchedIf, a_side_sees_the_rows_that_take_it_and_no_others) {
  const auto g = graph(kSolveOrSquare);
  // Row 1 holds a singular matrix and does not solve; then nobody does.
  const Literal a = f64({2, 2, 2}, {2, 0, 0, 4, 0, 0, 0, 0}), b = f64({2, 2}, {2, 4, 3, 5});
  const auto mapped = vmap(g, {.in_axes = {{"p", 0}, {"a", 0}, {"b", 0}}, .size = 2});
  expect_values(ir::interpret(mapped, Literals{bools({true, false}), a, b})[0], {2, 34});
  ir::Interpreter interpreter;
  expect_values(interpreter.run(mapped, Literals{bools({false, false}), a, b})[0], {20, 34});
  EXPECT_EQ(interpreter.stats().runs_of_op.count("batched_dense_solve"), 0u);
}

TEST(BatchedIf, differentiates_before_and_after_batching_alike) {
  const auto g = graph(kSolveOrSquare);
  const transform::VmapOptions rows{.in_axes = {{"p", 0}, {"a", 0}, {"b", 0}}, .size = 2};
  const Literals in{bools({true, false}), f64({2, 2, 2}, {2, 0, 0, 4, 0, 0, 0, 0}),
                    f64({2, 2}, {2, 4, 3, 5})};
  const auto first = ir::interpret(vmap(grad(g, {"a", "b"}), rows), in);
  // x = a^-1 b = (1, 1), db = a^-T 1 = (1/2, 1/4), da = -db x^T
  expect_values(first[0], {-0.5, -0.5, -0.25, -0.25, 0, 0, 0, 0});
  expect_values(first[1], {0.5, 0.25, 6, 10});
  Literals seeded = in;
  seeded.push_back(f64({2}, {1, 1}));
  const auto second = ir::interpret(grad(vmap(g, rows), {"a", "b"}), seeded);
  test::expect_close(second, first, 1e-14);
}

TEST(BatchedIf, a_slope_without_bound_on_the_other_side_does_not_appear) {
  const auto g = graph(R"(graph(p: bool[], x: f64[]) {
    return if(p, x, then_body=graph(x: f64[]) { return log(x) }, else_body=graph(x: f64[]) { return mul(x, x) })
  })");
  const transform::VmapOptions rows{.in_axes = {{"p", 0}, {"x", 0}}, .size = 2};
  const Literals in{bools({true, false}), f64({2}, {2, 0})};
  Literals seeded = in;
  seeded.push_back(f64({2}, {1, 1}));
  expect_values(ir::interpret(vmap(grad(g, {"x"}), rows), in)[0], {0.5, 0});
  expect_values(ir::interpret(grad(vmap(g, rows), {"x"}), seeded)[0], {0.5, 0});
  expect_values(ir::interpret(transform::jvp(vmap(g, rows), {"x"}), seeded)[1], {0.5, 0});
  const auto twice = vmap(grad(grad(g, {"x"}), {"x"}), rows);
  expect_values(ir::interpret(twice, in)[0], {-0.25, 2});
}

TEST(BatchedIf, nests_in_branches_loops_and_further_batches) {
  const auto g = graph(R"(graph(n: i32[], x: f64[]) {
    y:2 = while(n, x, carries=2, max_iterations=6,
      cond=graph(n: i32[], x: f64[]) { return compare(n, constant(value=i32[]{0}), kind=gt) },
      body=graph(n: i32[], x: f64[]) {
        z = if(compare(x, full(shape=f64[], value=2.0), kind=gt), x,
          then_body=graph(x: f64[]) { return log(sub(x, full(shape=f64[], value=2.0))) },
          else_body=graph(x: f64[]) { return add(mul(x, x), full(shape=f64[], value=1.5)) })
        return a=sub(n, constant(value=i32[]{1})), b=z })
    return y#1
  })");
  const auto d = transform::value_and_grad(g, {"x"});
  const transform::VmapOptions rows{.in_axes = {{"n", 0}, {"x", 0}}, .size = 3};
  const std::vector<int32_t> n{0, 1, 2, 3, 4, 5};
  const std::vector<double> x{0.5, 2.0, 2.5, 1.25, -0.75, 0.0};
  const auto once = ir::interpret(vmap(vmap(d, rows), {.in_axes = {{"n", 0}, {"x", 0}}, .size = 2}),
                                  Literals{i32({2, 3}, n), f64({2, 3}, x)});
  for (size_t i = 0; i < n.size(); ++i) {
    const auto want = ir::interpret(d, Literals{i32({}, {n[i]}), f64(x[i])});
    EXPECT_NEAR(once[0].real_at(int64_t(i)), want[0].real_at(0), 1e-12) << i;
    EXPECT_NEAR(once[1].real_at(int64_t(i)), want[1].real_at(0), 1e-12) << i;
  }
}

// Newton steps with a solve in each, differentiated twice.
TEST(BatchedWhile, the_hessian_of_a_loop_that_solves_meets_no_singular_matrix) {
  const auto g = graph(R"(graph(x: f64[2]) {
    y = while(x, carries=1, max_iterations=3,
      cond=graph(z: f64[2]) { return compare(reduce(mul(z, z)), full(shape=f64[], value=2.0), kind=gt) },
      body=graph(z: f64[2]) {
        m = add(mul(reshape(z, shape=(2, 1)), reshape(z, shape=(1, 2))), constant(value=f64[2,2]{4.0, 0.0, 0.0, 4.0}))
        return sub(z, batched_dense_solve(m, z)) })
    return reduce(mul(y, y))
  })");
  const Literals at{f64({2}, {1.5, 0.5})};
  const Literal h = ir::interpret(transform::hessian(g, "x"), at)[0];
  const auto first = grad(g, {"x"});
  for (int64_t j = 0; j < 2; ++j) {
    std::vector<double> up{1.5, 0.5}, down = up;
    up[size_t(j)] += 1e-5, down[size_t(j)] -= 1e-5;
    const auto a = ir::interpret(first, Literals{f64({2}, up)})[0],
               b = ir::interpret(first, Literals{f64({2}, down)})[0];
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_NEAR(h.real_at(2 * i + j), (a.real_at(i) - b.real_at(i)) / 2e-5, 1e-8) << i << j;
  }
}

ir::Graph squarings(int64_t bound) {
  return graph(cat(R"(graph(x: f64[]) {
    return while(x, carries=1, max_iterations=)",
                   bound, R"(,
      cond=graph(c: f64[]) { return compare(c, full(shape=f64[], value=100.0), kind=lt) },
      body=graph(c: f64[]) { return mul(c, c) })
  })"));
}

TEST(BoundedWhile, reverse_mode_costs_the_steps_taken_and_not_the_bound) {
  const auto runs = [](int64_t bound) {
    ir::Interpreter interpreter;
    const auto out = interpreter.run(transform::value_and_grad(squarings(bound), {"x"}), Literals{f64(3)});
    expect_values(out[1], {8 * std::pow(3.0, 7)});
    int64_t sum = 0;
    for (const auto& [op, count] : interpreter.stats().runs_of_op) sum += count;
    return std::pair(sum, interpreter.stats().peak_bytes);
  };
  const auto few = runs(8), many = runs(100'000), endless = runs(1'000'000'000'000);
  EXPECT_EQ(few.first, many.first);
  EXPECT_LT(endless.first, 3 * few.first);
  EXPECT_LT(endless.second, 1 << 28);
}

TEST(GatedScan, skips_the_steps_without_a_flag) {
  const auto g = graph(R"(graph(x: f64[], keep: bool[4], xs: f64[4]) {
    y:2 = scan(x, keep, xs, length=4, carries=1, gate=sequence, body=graph(c: f64[], k: bool[], x: f64[]) {
      return a=mul(c, x), b=c })
    return y, y#1
  })");
  const auto out =
      ir::interpret(g, Literals{f64(2), bools({true, false, true, false}), f64({4}, {3, 5, 7, 11})});
  expect_values(out[0], {42});
  expect_values(out[1], {2, 0, 6, 0});
}

TEST(GatedScan, is_refused_without_a_flag) {
  const auto text = [](const char* gate) {
    return cat("graph(x: f64[]) { return scan(x, length=4, carries=1, gate=", gate,
               ", body=graph(c: f64[]) { return sin(c) }) }");
  };
  EXPECT_NE(test::error_of([&] {
              graph(text("carry"));
            }).find("scan: gate: a step sees f64[] as its flag; it must be bool[]"),
            std::string::npos);
  EXPECT_NE(test::error_of([&] { graph(text("sequence")); }).find("scan: gate is sequence and there is none"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx
