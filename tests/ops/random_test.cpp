#include "rlx/ops/random/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/base/philox.h"
#include "rlx/ops/random/dropout.h"
#include "rlx/ops/random/sample.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal number(int64_t v) { return Literal::of<int64_t>({}, {v}); }

template <class F>
Literal drawn(int64_t key, int64_t counter, F f) {
  return evaluate({number(key), number(counter)}, [f](const Exprs& t) { return f(t[0], t[1]); })[0];
}

// Known answers published with Philox: all counter and key words 0, and all ones.
TEST(RandomBits, are_the_published_philox_4x32_10) {
  const auto four = [](Expr k, Expr c) { return random_bits(k, c, {4}); };
  EXPECT_EQ(drawn(0, 0, four), Literal::of<uint32_t>({4}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(RandomBits, depend_on_key_counter_and_position_only) {
  const auto y = drawn(7, 9, [](Expr k, Expr c) { return random_bits(k, c, {2, 3}); });
  const PhiloxBlock first = philox_block(7, 9, 0), second = philox_block(7, 9, 1);
  EXPECT_EQ(y, Literal::of<uint32_t>({2, 3}, {first[0], first[1], first[2], first[3], second[0], second[1]}));
}

TEST(RandomBits, a_tensor_of_keys_is_one_stream_for_each) {
  const auto y = evaluate({Literal::of<int64_t>({2}, {3, 4}), number(1)},
                          [](const Exprs& t) { return random_bits(t[0], t[1], {1}); });
  EXPECT_EQ(y[0], Literal::of<uint32_t>({2, 1}, {philox_block(3, 1, 0)[0], philox_block(4, 1, 0)[0]}));
}

TEST(RandomUniform, is_the_top_bits_scaled) {
  const auto y =
      drawn(7, 9, [](Expr k, Expr c) { return random_uniform(k, c, Shape(DType::f32, {2}), -1, 3); });
  const PhiloxBlock b = philox_block(7, 9, 0);
  expect_close(y, Literal::of<float>({2}, {4 * uniform_from_bits(b[0]) - 1, 4 * uniform_from_bits(b[1]) - 1}),
               1e-7);
}

TEST(RandomUniform, never_reaches_one_in_any_type) {
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const auto y = drawn(1, 2, [t](Expr k, Expr c) { return random_uniform(k, c, Shape(t, {20000})); });
    double lowest = 1, highest = 0, sum = 0;
    for (const double v : y.to_reals())
      lowest = std::min(lowest, v), highest = std::max(highest, v), sum += v;
    EXPECT_GE(lowest, 0) << dtype_name(t);
    EXPECT_LT(highest, 1) << dtype_name(t);
    EXPECT_NEAR(sum / 20000, 0.5, 0.01) << dtype_name(t);
  }
}

TEST(RandomNormal, is_box_muller_of_the_uniform_pair) {
  const auto y =
      drawn(7, 9, [](Expr k, Expr c) { return random_normal(k, c, Shape(DType::f32, {1}), 5, 2); });
  const PhiloxBlock b = philox_block(7, 9, 0);
  const double u = uniform_from_bits(b[0]), v = uniform_from_bits(b[1]);
  const double z = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v);
  expect_close(y, Literal::of<float>({1}, {float(5 + 2 * z)}), 1e-6);
}

TEST(RandomNormal, has_the_mean_and_deviation_asked_for) {
  const auto y =
      drawn(3, 4, [](Expr k, Expr c) { return random_normal(k, c, Shape(DType::f64, {50000}), 1, 2); });
  double sum = 0, squares = 0;
  for (const double v : y.to_reals()) sum += v, squares += (v - 1) * (v - 1);
  EXPECT_NEAR(sum / 50000, 1, 0.03);
  EXPECT_NEAR(squares / 50000, 4, 0.1);
}

TEST(Dropout, keeps_the_mean_by_scaling_what_stays) {
  const int n = 20000;
  const auto y = evaluate({Literal::full(Shape(DType::f32, {n}), 3), number(1), number(2)},
                          [](const Exprs& t) { return dropout(t[0], t[1], t[2], 0.25); })[0];
  int zeros = 0;
  for (const double v : y.to_reals()) {
    zeros += v == 0;
    EXPECT_TRUE(v == 0 || v == 4) << v;
  }
  EXPECT_NEAR(double(zeros) / n, 0.25, 0.01);
}

TEST(Dropout, has_one_mask_for_all_dtypes_and_passes_rate_zero) {
  const auto run = [](DType t, double rate) {
    return evaluate({Literal::full(Shape(t, {64}), 1), number(5), number(6)},
                    [rate](const Exprs& x) { return dropout(x[0], x[1], x[2], rate); })[0];
  };
  EXPECT_EQ(run(DType::f16, 0.5).cast(DType::f64), run(DType::f64, 0.5));
  EXPECT_EQ(run(DType::f32, 0), Literal::full(Shape(DType::f32, {64}), 1));
}

struct Draw {
  int64_t key = 0, counter = 0, top_k = 0;
  double top_p = 1, temperature = 1;
  int64_t seed = 0;
};

Literal sampled(const Literal& logits, Draw d) {
  return evaluate({logits, number(d.key), number(d.counter)}, [d](const Exprs& t) {
    return sample(t[0], t[1], t[2], d.top_k, d.top_p, d.temperature, d.seed);
  })[0];
}

Literal rows(int count, const std::vector<float>& row) {
  std::vector<float> v;
  for (int i = 0; i < count; ++i) v.insert(v.end(), row.begin(), row.end());
  return Literal::of<float>({count, int64_t(row.size())}, v);
}

std::vector<int> histogram(const Literal& tokens, int size) {
  std::vector<int> h(static_cast<size_t>(size));
  for (const int64_t t : tokens.to_integers()) ++h.at(size_t(t));
  return h;
}

TEST(Sample, draws_anew_when_the_counter_moves_and_repeats_otherwise) {
  const auto logits = rows(64, {0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(sampled(logits, {.counter = 1}), sampled(logits, {.counter = 1}));
  EXPECT_FALSE(sampled(logits, {.counter = 1}) == sampled(logits, {.counter = 2}));
  EXPECT_FALSE(sampled(logits, {}) == sampled(logits, {.seed = 1}));
  EXPECT_EQ(sampled(logits, {.key = 4, .seed = 3}), sampled(logits, {.key = 7}));
}

TEST(Sample, drops_ties_beyond_k_by_index) {
  const auto h = histogram(sampled(rows(2000, {1, 5, 5, 5, 0}), {.top_k = 2}), 5);
  EXPECT_EQ(h[0] + h[3] + h[4], 0);
  EXPECT_NEAR(h[1], 1000, 120);
}

TEST(Sample, never_draws_a_token_without_probability) {
  const float none = -INFINITY;
  const auto h = histogram(sampled(rows(3000, {none, 0, none, 0, none}), {}), 5);
  EXPECT_EQ(h[0] + h[2] + h[4], 0);
  EXPECT_NEAR(h[1], 1500, 150);
}

TEST(Sample, at_temperature_zero_is_exactly_greedy) {
  const auto y = sampled(Literal::of<float>({2, 3}, {1, 1.0000001f, 1, 2, 2, 1}), {.temperature = 0});
  EXPECT_EQ(y, Literal::of<int32_t>({2}, {1, 0}));
}

TEST(Sample, keeps_the_token_that_crosses_top_p) {
  // Probabilities 0.5, 0.3, 0.2: 0.6 needs the second token, and not the third.
  const std::vector<float> row{std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  const auto h = histogram(sampled(rows(4000, row), {.top_p = 0.6}), 3);
  EXPECT_EQ(h[0], 0);
  EXPECT_NEAR(h[1], 4000 * 5 / 8, 150);
  const auto one = histogram(sampled(rows(100, row), {.top_p = 0.4}), 3);
  EXPECT_EQ(one[1], 100);
}

TEST(Sample, follows_the_softmax_at_the_temperature) {
  // At temperature 2 the odds 1 : 9 become 1 : 3.
  const auto h = histogram(sampled(rows(8000, {0, std::log(9.0f)}), {.temperature = 2}), 2);
  EXPECT_NEAR(h[0], 2000, 150);
}

TEST(Sample, of_one_row_is_a_scalar) {
  EXPECT_EQ(sampled(Literal::of<float>({3}, {0, 50, 0}), {}), Literal::of<int32_t>({}, {1}));
}

}  // namespace
}  // namespace rlx::ops
