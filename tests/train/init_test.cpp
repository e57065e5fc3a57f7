#include "rlx/train/init.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using namespace train;

std::vector<double> values(const InitRule& rule, const std::string& shape, uint64_t seed = 1) {
  const ir::Graph g = test::graph(cat("graph @one(param w: ", shape, ") { return w }"));
  return init(g, rule, seed).at("w").to_reals();
}

struct Moments {
  double mean = 0, deviation = 0, low = 1e30, high = -1e30;
};
Moments moments(const std::vector<double>& x) {
  Moments m;
  for (const double v : x) m.mean += v / double(x.size());
  for (const double v : x) {
    m.deviation += (v - m.mean) * (v - m.mean) / double(x.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// 40,000 numbers: means lie within 5 deviations / 200, deviations within 2 %.
void expect_spread(const InitRule& rule, double mean, double deviation) {
  const Moments m = moments(values(rule, "f64[100,400]"));
  EXPECT_NEAR(m.mean, mean, 5 * deviation / 200);
  EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation);
}

TEST(Init, no_choices_are_written_as_braces) {
  const ir::Graph g = test::graph("graph @one(param w: f32[4,4]) { return w }");
  EXPECT_EQ(init(g, {}, 3).at("w"), init(g, std::vector<InitChoice>{}, 3).at("w"));
  EXPECT_EQ(init(g, {{"w", constant_value(2)}}, 3).at("w"), Literal::full(Shape(DType::f32, {4, 4}), 2));
}

TEST(Init, has_the_moments_it_says) {
  expect_spread(normal(2, 1), 1, 2);
  expect_spread(uniform(-1, 3), 1, 4 / std::sqrt(12.0));
  expect_spread(xavier_uniform(), 0, std::sqrt(2.0 / 500));
  expect_spread(xavier_normal(3), 0, 3 * std::sqrt(2.0 / 500));
  expect_spread(kaiming_uniform(), 0, std::sqrt(2.0 / 100));
  expect_spread(kaiming_normal(1), 0, std::sqrt(1.0 / 100));
  expect_spread(kaiming_normal(1, true), 0, std::sqrt(1.0 / 400));
  // The variance of a normal cut at two deviations.
  expect_spread(truncated_normal(0.5), 0, 0.5 * 0.8796256610342398);
}

TEST(Init, keeps_within_its_limits) {
  const Moments cut = moments(values(truncated_normal(1, 5, 1.5), "f64[100,100]"));
  EXPECT_GE(cut.low, 3.5);
  EXPECT_LE(cut.high, 6.5);
  const Moments flat = moments(values(xavier_uniform(), "f64[4,8]"));
  EXPECT_LE(flat.high, std::sqrt(6.0 / 12));
  EXPECT_GE(flat.low, -std::sqrt(6.0 / 12));
}

TEST(Init, counts_the_window_of_a_kernel) {
  EXPECT_EQ(fans_of(parse_shape("f32[8,4,3,3]")).in, 36);
  EXPECT_EQ(fans_of(parse_shape("f32[8,4,3,3]")).out, 72);
  EXPECT_EQ(fans_of(parse_shape("f32[8,4]")).in, 8);
  EXPECT_EQ(fans_of(parse_shape("f32[8,4]"), true).in, 4);
}

TEST(Init, makes_orthonormal_rows_or_columns) {
  for (const auto& [rows, columns] : {std::pair{5, 9}, std::pair{9, 5}, std::pair{6, 6}}) {
    const auto q = values(orthogonal(2), cat("f64[", rows, ",", columns, "]"));
    const bool tall = rows > columns;
    const int count = std::min(rows, columns), length = std::max(rows, columns);
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b < count; ++b) {
        double dot = 0;
        for (int i = 0; i < length; ++i)
          dot += tall ? q[size_t(i * columns + a)] * q[size_t(i * columns + b)]
                      : q[size_t(a * columns + i)] * q[size_t(b * columns + i)];
        EXPECT_NEAR(dot, a == b ? 4 : 0, 1e-13);
      }
    }
  }
  EXPECT_EQ(test::message_of([] { values(orthogonal(), "f32[3]"); }),
            "init: orthogonal of f32[3]; at least two axes are needed");
}

TEST(Init, depends_on_seed_and_name_alone) {
  const ir::Graph one = test::graph("graph @one(param w: f32[4,4]) { return w }");
  const ir::Graph two = test::graph("graph @two(param v: f32[4,4], param w: f32[4,4]) { return v, w }");
  EXPECT_EQ(init(one, normal(), 7).at("w"), init(two, normal(), 7).at("w"));
  EXPECT_NE(init(two, normal(), 7).at("v"), init(two, normal(), 7).at("w"));
  EXPECT_NE(init(one, normal(), 7).at("w"), init(one, normal(), 8).at("w"));
}

TEST(Init, takes_the_first_choice_and_else_what_the_graph_says) {
  const ir::Graph g =
      test::graph(R"(graph @net(x: f32[2,3], param g: f32[3], param w: f32[3,3], param b: f32[3],
                                               param head.w: f32[3,3]) {
    n = layer_norm(x, g, b)
    y = matmul(matmul(n, w), head.w)
    return y
  })");
  const auto values = init(g, {{"head.*", constant_value(0.5)}, {"*", zeros()}}, 1);
  EXPECT_EQ(values.at("head.w"), Literal::full(parse_shape("f32[3,3]"), 0.5));
  EXPECT_EQ(values.at("w"), Literal::zeros(parse_shape("f32[3,3]")));
  const auto plain = init(g, {}, 1);
  EXPECT_EQ(plain.at("g"), Literal::full(parse_shape("f32[3]"), 1));
  EXPECT_EQ(plain.at("b"), Literal::zeros(parse_shape("f32[3]")));
  EXPECT_NE(plain.at("w"), Literal::zeros(parse_shape("f32[3,3]")));
  const std::string error = test::message_of([&] { init(g, {{"tail.*", zeros()}, {"*", InitRule()}}, 1); });
  EXPECT_TRUE(
      error.starts_with("init: 'tail.*' is to start by a rule, but no param has that name; there are "))
      << error;
  EXPECT_TRUE(error.ends_with("; the rule for '*' has no function")) << error;
}

}  // namespace
}  // namespace rlx
