#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/elementwise/activation_backward.h"
#include "rlx/ops/linear/blocks.h"
#include "rlx/ops/linear/fused_linear.h"
#include "rlx/ops/linear/grouped_matmul.h"
#include "rlx/ops/linear/swiglu.h"
#include "rlx/ops/loss/cross_entropy.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& v) { return Literal::of<double>(std::move(dims), v); }

template <class Build>
Literal one(const Literals& in, Build build) {
  return evaluate(in, build)[0];
}

double silu_of(double x) { return x / (1 + std::exp(-x)); }

const Literal kX = reals({1, 2}, {1, 2}), kW = reals({2, 2}, {1, -3, 2, 1}), kBias = reals({2}, {10, -1});
// kX kW = (5, -1), with the bias (15, -2).

TEST(Linear, adds_the_bias_and_applies_the_activation) {
  const auto y = evaluate({kX, kW, kBias}, [](const Exprs& t) {
    return Exprs{linear_bias(t[0], t[1]), linear_bias(t[0], t[1], t[2]),
                 linear_bias_act(t[0], t[1], t[2], Activation::relu),
                 linear_fused(t[0], t[1], t[2], Activation::relu), fused_matmul_bias_act(t[0], t[1], t[2])};
  });
  expect_close(y[0], reals({1, 2}, {5, -1}), 0);
  expect_close(y[1], reals({1, 2}, {15, -2}), 0);
  expect_close(y[2], reals({1, 2}, {15, 0}), 0);
  expect_close(y[3], reals({1, 2}, {15, 0}), 0);
  expect_close(y[4], reals({1, 2}, {15, -2}), 0);
}

TEST(Linear, shares_its_input_between_two_products) {
  const auto y = evaluate({kX, kW, reals({2, 1}, {3, 4})}, [](const Exprs& t) {
    const auto [first, second] = shared_matmul_pair(t[0], t[1], t[2]);
    return Exprs{first, second};
  });
  expect_close(y[0], reals({1, 2}, {5, -1}), 0);
  expect_close(y[1], reals({1, 1}, {11}), 0);
}

TEST(Swiglu, takes_the_gate_from_the_half_it_is_told) {
  const auto y = evaluate({reals({1, 4}, {1, 2, 3, 4})}, [](const Exprs& t) {
    return Exprs{fused_swiglu(t[0], false), fused_swiglu(t[0], true), fused_swiglu(t[0], false, DType::f32)};
  });
  expect_close(y[0], reals({1, 2}, {1 * silu_of(3), 2 * silu_of(4)}), 1e-15);
  expect_close(y[1], reals({1, 2}, {3 * silu_of(1), 4 * silu_of(2)}), 1e-15);
  expect_close(y[2], Literal::of<float>({1, 2}, {float(silu_of(3)), float(2 * silu_of(4))}), 1e-7);
}

TEST(Swiglu, feed_forward_is_the_same_fused_or_not) {
  const Literals in{kX, kW, reals({2, 2}, {1, 0, 0, 1}), reals({2, 1}, {1, 100})};
  const auto y = evaluate(in, [](const Exprs& t) {
    return Exprs{swiglu_ffn(t[0], t[1], t[2], t[3]), fused_swiglu_ffn(t[0], t[1], t[2], t[3])};
  });
  const Literal want = reals({1, 1}, {5 * silu_of(1) - 100 * silu_of(2)});  // up (5, -1), gate (1, 2)
  expect_close(y[0], want, 1e-14);
  expect_close(y[1], want, 1e-14);
}

TEST(Swiglu, joined_weights_work_with_a_symbolic_number_of_rows) {
  Graph g;
  const Expr x{&g, g.input("x", Shape(DType::f64, {Dim::rows(), 2}))};
  const Expr w{&g, g.input("w", Shape(DType::f64, {2, 3}))};
  const Expr down{&g, g.input("down", Shape(DType::f64, {3, 2}))};
  EXPECT_EQ(cat(fused_swiglu_ffn(x, w, w, down).shape()), "f64[rows,2]");
}

TEST(LoraMatmul, adds_the_scaled_update) {
  const auto y = one({kX, kW, reals({2, 1}, {1, 1}), reals({1, 2}, {1, 10})},
                     [](const Exprs& t) { return lora_matmul(t[0], t[1], t[2], t[3], 0.5); });
  expect_close(y, reals({1, 2}, {6.5, 14}), 0);
}

TEST(GroupedMatmul, multiplies_each_row_by_the_matrix_of_its_expert) {
  const Literal x = reals({3, 2}, {1, 2, 3, 4, 5, 6}), w = reals({2, 2, 1}, {1, 10, 100, 1000});
  for (const Literal& e : {Literal::of<int32_t>({3}, {1, 0, 1}), Literal::of<double>({3}, {1, 0, 1})}) {
    const auto y = one({x, w, e}, [](const Exprs& t) { return grouped_matmul(t[0], t[1], t[2]); });
    expect_close(y, reals({3, 1}, {2100, 43, 6500}), 0);
  }
}

TEST(GroupedOuter, leaves_experts_without_rows_at_zero) {
  const auto w = one(
      {reals({3, 2}, {1, 2, 3, 4, 5, 6}), reals({3, 1}, {1, 10, 100}), Literal::of<int32_t>({3}, {2, 0, 2})},
      [](const Exprs& t) { return grouped_outer(t[0], t[1], t[2], 3); });
  expect_close(w, reals({3, 2, 1}, {30, 40, 0, 0, 501, 602}), 0);
}

TEST(CrossEntropy, is_the_log_sum_less_the_labelled_logit) {
  const double l3 = std::log(3);
  const Literal logits = reals({2, 2}, {0, l3, 1000, 1000});
  for (const Literal& labels : {Literal::of<int64_t>({2}, {1, 0}), Literal::of<double>({2}, {1, 0})}) {
    const auto y = evaluate({logits, labels, reals({2}, {1, 10})}, [](const Exprs& t) {
      return Exprs{softmax_cross_entropy_with_logits(t[0], t[1]),
                   softmax_cross_entropy_backward(t[0], t[1], t[2])};
    });
    expect_close(y[0], reals({2}, {std::log(4) - l3, std::log(2)}), 1e-13);
    expect_close(y[1], reals({2, 2}, {0.25, -0.25, -5, 5}), 1e-14);
  }
}

TEST(CrossEntropy, refuses_labels_that_are_not_classes) {
  const auto loss = [](const Literal& labels) {
    return test::message_of([&] {
      one({reals({2, 2}, {0, 0, 0, 0}), labels},
          [](const Exprs& t) { return softmax_cross_entropy_with_logits(t[0], t[1]); });
    });
  };
  EXPECT_EQ(loss(Literal::of<int32_t>({2}, {0, 2})),
            "softmax_cross_entropy_with_logits: element 1 of labels is 2; it must be at least 0 and below 2");
  EXPECT_EQ(loss(Literal::of<double>({2}, {0.5, 1})),
            "softmax_cross_entropy_with_logits: element 0 of labels is 0.5; an index is a whole number");
}

TEST(GroupedMatmul, refuses_experts_that_do_not_exist) {
  EXPECT_EQ(test::message_of([&] {
              one({reals({1, 1}, {1}), reals({2, 1, 1}, {1, 1}), Literal::of<int32_t>({1}, {-1})},
                  [](const Exprs& t) { return grouped_matmul(t[0], t[1], t[2]); });
            }),
            "grouped_matmul: element 0 of e is -1; it must be at least 0 and below 2");
}

TEST(ActivationBackward, is_the_gradient_times_the_slope) {
  const std::vector<std::pair<Activation, double>> slopes{{Activation::gelu, 1.0833154705876864},
                                                          {Activation::gelu_approx, 1.0829640838457826},
                                                          {Activation::silu, 0.9276705118714869},
                                                          {Activation::relu, 1},
                                                          {Activation::sigmoid, 0.19661193324148185},
                                                          {Activation::tanh, 0.41997434161402614},
                                                          {Activation::exp, std::exp(1)},
                                                          {Activation::log, 1},
                                                          {Activation::sqrt, 0.5},
                                                          {Activation::rsqrt, -0.5},
                                                          {Activation::neg, -1},
                                                          {Activation::abs, 1},
                                                          {Activation::sin, std::cos(1)},
                                                          {Activation::cos, -std::sin(1)},
                                                          {Activation::tan, 1 + std::tan(1) * std::tan(1)},
                                                          {Activation::atan, 0.5},
                                                          {Activation::round, 0}};
  EXPECT_EQ(slopes.size(), choice_names(Activation{}).size());
  for (const auto& [kind, slope] : slopes) {
    SCOPED_TRACE(choice_names(kind)[size_t(kind)]);
    const auto dx = one({reals({1}, {1}), reals({1}, {10})},
                        [&](const Exprs& t) { return activation_backward(kind, t[0], t[1]); });
    expect_close(dx, reals({1}, {10 * slope}), 1e-12);
  }
}

TEST(ActivationBackward, of_roots_and_kinks_at_zero_is_zero) {
  const Literal zero = reals({1}, {0}), dy = reals({1}, {3});
  for (const Activation kind : {Activation::sqrt, Activation::rsqrt, Activation::abs, Activation::relu}) {
    expect_close(one({zero, dy}, [&](const Exprs& t) { return activation_backward(kind, t[0], t[1]); }), zero,
                 0);
  }
}

TEST(ReluBackward, passes_the_gradient_where_x_is_positive) {
  expect_close(one({reals({3}, {-1, 0, 2}), reals({3}, {5, 6, 7})},
                   [](const Exprs& t) { return relu_backward(t[0], t[1]); }),
               reals({3}, {0, 0, 7}), 0);
}

TEST(ComplexNormSqBackward, is_g_times_z_without_a_two) {
  const auto dz = one({Literal::of<complex64>({1}, {{3, -4}}), Literal::of<float>({1}, {2})},
                      [](const Exprs& t) { return complex_norm_sq_backward(t[0], t[1]); });
  expect_close(dz, Literal::of<complex64>({1}, {{6, -8}}), 0);
}

}  // namespace
}  // namespace rlx::ops
