#include "rlx/runtime/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

ir::Graph network() {
  return graph(R"(graph @net(x: f32[8,16], param w: f32[16,32], param v: f32[32,4]) {
    h = matmul(x, w)
    a = relu(h)
    y = matmul(a, v)
    return y
  })");
}
NamedLiterals weights() {
  return {{"w", ir::sample_literal("f32[16,32]", 1)}, {"v", ir::sample_literal("f32[32,4]", 2)}};
}

TEST(Calibrate, finds_the_ranges_over_all_examples) {
  const ir::Graph g = graph("graph @g(x: f32[2]) { y = mul(x, x) return y }");
  const NamedLiterals sets[] = {{{"x", Literal::of<float>({2}, {-3, 1})}},
                                {{"x", Literal::of<float>({2}, {2, 0})}}};
  const auto ranges = calibrate(g, {}, sets, {"x", "y"});
  EXPECT_EQ(ranges.at("x").low, -3);
  EXPECT_EQ(ranges.at("x").high, 2);
  EXPECT_EQ(ranges.at("y").low, 0);
  EXPECT_EQ(ranges.at("y").high, 9);
  EXPECT_EQ(error_of([&] { calibrate(g, {}, {}, {"x"}); }), "calibrate: no inputs are given to run on");
  EXPECT_EQ(error_of([&] { calibrate(g, {}, sets, {"z"}); }),
            "calibrate: no value of graph 'g' is called 'z'");
  const NamedLiterals infinite[] = {{{"x", Literal::of<float>({2}, {INFINITY, 1})}}};
  EXPECT_NE(error_of([&] { calibrate(g, {}, infinite, {"x"}); }).find("no scale would fit"),
            std::string::npos);
}

TEST(QuantiseAfterTraining, stays_near_the_graph_in_f32) {
  std::vector<NamedLiterals> sets;
  for (uint64_t i = 0; i < 4; ++i) sets.push_back({{"x", ir::sample_literal("f32[8,16]", 10 + i)}});
  const ir::Graph rounded = quantise_after_training(network(), weights(), sets);
  EXPECT_TRUE(rounded.verify().empty());
  EXPECT_EQ(rounded.output_names(), network().output_names());
  const Literal got = compile(rounded, weights()).run(sets[0]).at("y");
  const Literal want = compile(network(), weights()).run(sets[0]).at("y");
  double error = 0, size = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    error += std::pow(got.real_at(i) - want.real_at(i), 2);
    size += std::pow(want.real_at(i), 2);
  }
  EXPECT_LT(std::sqrt(error / size), 0.03);
  EXPECT_GT(error, 0);  // it is rounded
}

}  // namespace
}  // namespace rlx
