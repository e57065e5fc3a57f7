// Compositions that other systems get wrong, each by name.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/transform/transform.h"
#include "tests/support/batches.h"
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

// A function of two complex matrices, away from zero and well conditioned, under the squared modulus.
class ComplexRule : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ComplexRule, agrees_with_differences_of_real_and_imaginary_parts) {
  const auto g =
      graph(cat("graph(a: c64[2,2], b: c64[2,2]) { y = ", GetParam().second, " return complex_norm_sq(y) }"));
  const auto a = Literal::of<complex64>({2, 2}, {{2, 1}, {0.3f, -0.5f}, {0.2f, 0.4f}, {1.5f, -1}});
  const auto b = Literal::of<complex64>({2, 2}, {{1.5f, 0.5f}, {-0.5f, 1.2f}, {0.7f, -0.9f}, {1.1f, 1}});
  test::DerivativeCheck(g, {a, b}, true, true).run();
}

INSTANTIATE_TEST_SUITE_P(
    Checklist, ComplexRule,
    testing::Values(std::pair("mul", "mul(a, b)"), std::pair("div", "div(a, b)"),
                    std::pair("matmul", "matmul(a, b)"), std::pair("solve", "dense_solve(a, b)"),
                    std::pair("exp", "exp(a)"), std::pair("log", "log(a)"), std::pair("sqrt", "sqrt(a)"),
                    std::pair("abs2", "mul(a, a)"), std::pair("conjugate", "conjugate(mul(a, b))"),
                    std::pair("fft_backward", "fft(a)"), std::pair("fft_forward", "fft(a, norm=forward)"),
                    std::pair("fft_ortho", "fft(a, norm=ortho)"),
                    std::pair("ifft_backward", "fft(a, inverse=true)"),
                    std::pair("ifft_forward", "fft(a, norm=forward, inverse=true)"),
                    std::pair("ifft_ortho", "fft(a, norm=ortho, inverse=true)")),
    [](const auto& info) { return std::string(info.param.first); });

// Every choice of attention alone and all together, with differences of each operand, the bias included.
class AttentionRule : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(AttentionRule, agrees_with_differences_to_second_order) {
  const std::string attrs = GetParam().second;
  const bool bias = attrs.find("bias") != std::string::npos;
  const bool grouped = attrs.find("num_kv_heads") != std::string::npos;
  const char* keys = grouped ? "f64[1,3,2]" : "f64[1,3,4]";
  check(cat("graph(q: f64[1,2,4], k: ", keys, ", v: ", keys, bias ? ", b: f64[1,2,2,3]" : "",
            ") { y:2 = attention(q, k, v", bias ? ", b" : "", ", num_heads=2, head_dim=2", attrs,
            ") return y }"));
}

INSTANTIATE_TEST_SUITE_P(
    Checklist, AttentionRule,
    testing::Values(std::pair("plain", ""), std::pair("scale", ", score_scale=0.7"),
                    std::pair("soft_cap", ", attn_logit_softcap=1.5"),
                    std::pair("causal", ", mask_kind=causal"),
                    std::pair("window", ", mask_kind=sliding_window, window=1"),
                    std::pair("bias", ", mask_kind=bias"), std::pair("grouped_queries", ", num_kv_heads=1"),
                    std::pair("all",
                              ", mask_kind=bias, score_scale=0.7, attn_logit_softcap=1.5, num_kv_heads=1")),
    [](const auto& info) { return std::string(info.param.first); });

TEST(ForwardRules, hvp_is_the_difference_of_gradients_on_a_network_with_gelu_and_layer_norm) {
  const auto g = graph(R"(graph(x: f64[2,3], w: f64[3,4], gamma: f64[4], beta: f64[4], u: f64[4,2]) {
    h = layer_norm(gelu(matmul(x, w)), gamma, beta)
    return reduce(gelu(matmul(h, u)))
  })");
  Literals in;
  for (const auto id : g.leaves()) in.push_back(test::random_like(g.node(id).shapes[0], 7 * id + 1));
  const Literal v = test::random_like(parse_shape("f64[3,4]"), 91);
  Literals with_tangent = in;
  with_tangent.push_back(v);
  const Literal got = ir::interpret(transform::hvp(g, {"w"}), with_tangent).back();
  const auto gradient_at = [&](double h) {
    Literals at = in;
    at[1] = test::moved(in[1], v, h);
    return ir::interpret(transform::grad(g, {"w"}), at)[0];
  };
  const double h = 1e-5;
  const Literal upper = gradient_at(h), lower = gradient_at(-h);
  for (int64_t i = 0; i < got.elements(); ++i)
    EXPECT_NEAR(got.real_at(i), (upper.real_at(i) - lower.real_at(i)) / (2 * h), 1e-7) << i;
}

TEST(VmapRules, vmap_of_grad_is_the_gradients_stacked) {
  const auto g = graph(R"(graph(x: f64[3], w: f64[3,2]) {
    y = tanh(matmul(reshape(x, shape=(1, 3)), w))
    return reduce(mul(y, y))
  })");
  const auto one = transform::grad(g, {"w", "x"});
  const auto mapped = transform::vmap(one, {.in_axes = {{"x", 0}}, .size = 4});
  const Literal w = test::random_like(parse_shape("f64[3,2]"), 1);
  Literals xs, dw, dx;
  for (uint64_t k = 0; k < 4; ++k) {
    xs.push_back(test::random_like(parse_shape("f64[3]"), 20 + k));
    const Literals d = ir::interpret(one, Literals{xs.back(), w});
    dw.push_back(d[0]);
    dx.push_back(d[1]);
  }
  const Literals got = ir::interpret(mapped, Literals{test::stack(xs), w});
  test::expect_close(got[0], test::stack(dw), 1e-12);
  test::expect_close(got[1], test::stack(dx), 1e-12);
}

// A loop with two carries, a parameter closed over, a sequence it reads, one it does not, and an output of
// its own; K = 0 is the plain form.
constexpr int64_t kSteps = 9;

ir::Graph network_loop(int64_t checkpoints) {
  using namespace ops;
  const Shape state(DType::f64, {1, 2}), weight(DType::f64, {2, 2}), slice(DType::f64, {1, 2});
  ir::Graph body("step"), g("loop");
  {
    const ir::Expr a{&body, body.input("a", state)}, b{&body, body.input("b", state)},
        w{&body, body.input("w", weight)}, x{&body, body.input("x", slice)};
    body.input("unused", slice);
    const ir::Expr n = tanh(matmul(a, w) + x * b);
    body.set_outputs({n, sin(b + a), n * b});
  }
  const Shape sequence(DType::f64, {kSteps, 1, 2});
  const ir::Exprs init{{&g, g.input("a", state)}, {&g, g.input("b", state)}},
      consts{{&g, g.input("w", weight)}}, xs{{&g, g.input("x", sequence)}, {&g, g.input("unused", sequence)}};
  ir::Values outputs;
  for (const ir::Expr& t :
       checkpoints == 0 ? scan_all(g, init, consts, xs, std::move(body), kSteps)
                        : scan_all_checkpointed(g, init, consts, xs, std::move(body), kSteps, checkpoints))
    outputs.push_back(t);
  g.set_outputs(outputs, {"final_a", "final_b", "trajectory"});
  return g;
}

Literals loop_leaves() {
  const auto g = network_loop(0);
  Literals out;
  for (const auto id : g.leaves()) out.push_back(test::random_like(g.node(id).shapes[0], 5 * id + 2));
  return out;
}

const std::vector<std::string> kLoopNames{"a", "b", "w", "x", "unused"};

TEST(ScanRules, values_and_all_gradients_are_the_same_bits_for_every_number_of_checkpoints) {
  const auto run = [](int64_t k) {
    Literals in = loop_leaves();
    const auto d = transform::value_and_grad(network_loop(k), kLoopNames, {.cotangent_inputs = true});
    for (size_t i = in.size(); i < d.leaves().size(); ++i)
      in.push_back(test::random_like(d.node(d.leaves()[i]).shapes[0], 60 + i));
    return ir::interpret(d, in);
  };
  const Literals plain = run(0);
  ASSERT_EQ(plain.size(), 8u);
  test::expect_close(plain[7], Literal::zeros(plain[7].shape()), 0);  // the sequence nobody reads
  for (const int64_t k : {int64_t(1), int64_t(3), kSteps}) {
    const Literals kept = run(k);
    ASSERT_EQ(kept.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_TRUE(kept[i] == plain[i]) << "K " << k << " result " << i;
  }
}

TEST(ScanRules, gradients_of_carries_parameter_and_sequence_agree_with_differences) {
  for (const int64_t k : {int64_t(0), int64_t(3)})
    test::DerivativeCheck(network_loop(k), loop_leaves(), true, true).run();
}

TEST(ScanRules, a_tangent_through_the_loop_is_the_same_for_every_number_of_checkpoints) {
  Literals in = loop_leaves();
  for (size_t i = 0; i < 4; ++i) in.push_back(test::random_like(in[i].shape(), 80 + i));
  const std::vector<std::string> names{"a", "b", "w", "x"};
  const Literals plain = ir::interpret(transform::jvp(network_loop(0), names), in);
  for (const int64_t k : {int64_t(1), int64_t(3), kSteps})
    test::expect_close(ir::interpret(transform::jvp(network_loop(k), names), in), plain, 1e-13);
}

TEST(ScanRules, a_batch_of_loops_is_each_loop_by_itself) {
  for (const int64_t k : {int64_t(0), int64_t(3)}) {
    const auto g = network_loop(k);
    const auto mapped = transform::vmap(g, {.in_axes = {{"a", 0}, {"w", 1}}, .size = 2});
    const Literals in = loop_leaves();
    Literals as, ws;
    std::vector<Literals> want(3);
    for (uint64_t e = 0; e < 2; ++e) {
      as.push_back(test::random_like(in[0].shape(), 30 + e));
      ws.push_back(test::random_like(in[2].shape(), 40 + e));
      const Literals one = ir::interpret(g, Literals{as[e], in[1], ws[e], in[3], in[4]});
      for (size_t r = 0; r < 3; ++r) want[r].push_back(one[r]);
    }
    const Literals got =
        ir::interpret(mapped, Literals{test::stack(as), in[1], test::stack(ws, 1), in[3], in[4]});
    for (size_t r = 0; r < 3; ++r) test::expect_close(got[r], test::stack(want[r]), 1e-12);
  }
}

}  // namespace
}  // namespace rlx
