// Compositions that other systems get wrong, each by name.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_values;
using test::f64;
using test::graph;

// First and second order against differences and each other.
void check(std::string_view text) {
  const auto g = graph(text);
  Literals leaves;
  for (const auto id : g.leaves()) leaves.push_back(test::random_like(g.node(id).shapes[0], 11 * id + 3));
  test::DerivativeCheck(g, leaves, true).run();
}

TEST(SecondOrder, convolution) {
  check(R"(graph(x: f64[1,2,5,4], w: f64[3,2,3,2]) {
    y = conv2d(x, w, kernel_size=[3, 2], stride=[2, 1], padding=[1, 0], dilation=[1, 1])
    return tanh(y)
  })");
}

TEST(SecondOrder, norms) {
  check("graph(x: f64[3,4], g: f64[4], b: f64[4]) { return sin(layer_norm(x, g, b, axis=1, eps=0.01)) }");
  check("graph(x: f64[3,4], g: f64[4], b: f64[4]) { return sin(rms_norm(x, g, b, axis=1, eps=0.01)) }");
}

TEST(SecondOrder, attention_with_scale_soft_cap_window_and_grouped_queries) {
  check(R"(graph(q: f64[1,4,8], k: f64[1,4,4], v: f64[1,4,4]) {
    y:2 = attention(q, k, v, num_heads=4, num_kv_heads=2, head_dim=2, mask_kind=sliding_window, window=2, score_scale=0.7,
                    attn_logit_softcap=1.5)
    return y
  })");
}

TEST(VmapRules, an_expand_that_raises_the_rank) {
  const auto g = graph("graph(x: f64[3]) { return expand(x, shape=(2, 3)) }");
  const auto mapped = transform::vmap(g, {.in_axes = {{"x", 0}}, .size = 2});
  expect_values(ir::interpret(mapped, Literals{f64({2, 3}, {1, 2, 3, 4, 5, 6})})[0],
                {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
}

TEST(VmapRules, batched_weights_and_batched_indices) {
  const auto product = graph("graph(x: f64[2], w: f64[2,1]) { return matmul(reshape(x, shape=(1, 2)), w) }");
  const auto weights = transform::vmap(product, {.in_axes = {{"w", 0}}, .size = 2});
  expect_values(ir::interpret(weights, Literals{f64({2}, {1, 2}), f64({2, 2, 1}, {1, 1, 3, 4})})[0], {3, 11});
  const auto take = graph("graph(t: f64[3,2], i: i32[2]) { return gather(t, i, axis=0) }");
  const auto both = transform::vmap(take, {.in_axes = {{"t", 0}, {"i", 0}}, .size = 2});
  const Literal t = f64({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_values(ir::interpret(both, Literals{t, test::i32({2, 2}, {0, 2, 1, 1})})[0],
                {0, 1, 4, 5, 8, 9, 8, 9});
}

TEST(ScanRules, one_step_and_trajectory_beside_the_final_value) {
  check(R"(graph(c: f64[2], x: f64[1,2]) {
    r:2 = scan(c, x, length=1, carries=1, body=graph(c: f64[2], x: f64[2]) { n = sin(mul(c, x)) return n, n })
    return r, r#1
  })");
  check(R"(graph(c: f64[2]) {
    r:2 = scan(c, length=3, carries=1, body=graph(c: f64[2]) { n = sin(c) return n, n })
    return r, r#1
  })");
}

TEST(ControlRules, both_predicates_and_several_carries) {
  const auto g = graph(R"(graph(p: bool[], x: f64[2]) {
    y = if(p, x, then_body=graph(a: f64[2]) { return mul(a, a) }, else_body=graph(a: f64[2]) { return sin(a) })
    return reduce(y)
  })");
  const auto d = transform::grad(g, {"x"});
  const Literal x = f64({2}, {0.5, 2});
  expect_values(ir::interpret(d, Literals{Literal::of<bool>({}, {true}), x})[0], {1, 4});
  expect_values(ir::interpret(d, Literals{Literal::of<bool>({}, {false}), x})[0],
                {std::cos(0.5), std::cos(2.0)});
  const auto loop = graph(R"(graph(n: i32[], x: f64[]) {
    r:2 = while(n, x, carries=2, max_iterations=9,
      cond=graph(n: i32[], x: f64[]) { return compare(n, full(shape=i32[], value=0.0), kind=gt) },
      body=graph(n: i32[], x: f64[]) { return sub(n, full(shape=i32[], value=1.0)), mul(x, x) })
    return r#1
  })");
  const auto dx = transform::grad(loop, {"x"});
  expect_values(ir::interpret(dx, Literals{test::i32({}, {3}), f64(1.1)})[0], {8 * std::pow(1.1, 7)});
  expect_values(ir::interpret(dx, Literals{test::i32({}, {0}), f64(1.1)})[0], {1});
}

TEST(ComplexRules, arithmetic_products_solves_functions_and_transforms) {
  for (const char* body :
       {"mul(a, b)", "div(a, b)", "matmul(a, b)", "dense_solve(a, b)", "exp(a)", "log(a)", "sqrt(a)",
        "conjugate(mul(a, b))", "fft(a)", "fft(a, norm=ortho)", "fft(a, norm=forward, inverse=true)"}) {
    SCOPED_TRACE(body);
    const auto g = graph(cat("graph(a: c64[2,2], b: c64[2,2]) { y = ", body, " return complex_norm_sq(y) }"));
    // Away from zero and well conditioned.
    const auto a = Literal::of<complex64>({2, 2}, {{2, 1}, {0.3f, -0.5f}, {0.2f, 0.4f}, {1.5f, -1}});
    const auto b = Literal::of<complex64>({2, 2}, {{1.5f, 0.5f}, {-0.5f, 1.2f}, {0.7f, -0.9f}, {1.1f, 1}});
    test::DerivativeCheck(g, {a, b}, true).run();
  }
}

}  // namespace
}  // namespace rlx
