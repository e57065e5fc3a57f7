#include "rlx/runtime/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/backend/plan.h"
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

double relative_error(const Literal& got, const Literal& want) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    error += std::pow(got.real_at(i) - want.real_at(i), 2);
    size += std::pow(want.real_at(i), 2);
  }
  return std::sqrt(error / size);
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
  const auto [rounded, remarks] = quantise_after_training(network(), weights(), sets);
  EXPECT_TRUE(remarks.empty());
  EXPECT_TRUE(rounded.verify().empty());
  EXPECT_EQ(rounded.output_names(), network().output_names());
  const Literal got = compile(rounded, weights()).run(sets[0]).at("y");
  const Literal want = compile(network(), weights()).run(sets[0]).at("y");
  const double error = relative_error(got, want);
  EXPECT_LT(error, 0.03);
  EXPECT_GT(error, 0);  // it is rounded
}

// Channels of very different sizes, which one scale for all would lose.
TEST(QuantiseAfterTraining, makes_convolutions_products_of_codes) {
  const ir::Graph g = graph(
      R"(graph @net(x: f32[2,3,9,9], param w: f32[8,3,3,3], param b: f32[8,1,1], param v: f32[4,8,1,1]) {
    c = conv2d(x, w, padding=[1,1])
    s = add(c, b)
    a = relu(s)
    y = conv2d(a, v)
    return y
  })");
  NamedLiterals w{{"w", ir::sample_literal("f32[8,3,3,3]", 1)},
                  {"b", ir::sample_literal("f32[8,1,1]", 2)},
                  {"v", ir::sample_literal("f32[4,8,1,1]", 3)}};
  auto of_last_channel = w.at("w").mutable_data<float>().subspan(7 * 27);
  for (float& x : of_last_channel) x *= 100;
  std::vector<NamedLiterals> sets;
  for (uint64_t i = 0; i < 4; ++i) sets.push_back({{"x", ir::sample_literal("f32[2,3,9,9]", 10 + i)}});
  const auto [rounded, remarks] = quantise_after_training(g, w, sets);
  EXPECT_TRUE(remarks.empty());
  EXPECT_TRUE(rounded.verify().empty());
  CompiledGraph f = compile(rounded, w);
  size_t of_codes = 0;
  for (const backend::Plan::Step& s : f.plan().steps) of_codes += s.kernel == "codes";
  EXPECT_EQ(of_codes, 2u) << f.plan().text();
  EXPECT_LT(relative_error(f.run(sets[0]).at("y"), compile(g, w).run(sets[0]).at("y")), 0.03);
}

TEST(QuantiseAfterTraining, tells_which_products_it_left_and_why) {
  const auto left = [](const char* text, const NamedLiterals& set) {
    const NamedLiterals sets[] = {set};
    std::string out;
    for (const auto& r : quantise_after_training(graph(text), {}, sets).remarks)
      out += cat(r.node, ": ", r.text, "\n");
    return out;
  };
  EXPECT_EQ(left("graph @g(x: f32[1,2,5], w: f32[3,2,3]) { y = conv1d(x, w) return y }", {}),
            "y conv1d: left as it is: products of codes exist for matmul and conv2d alone\n");
  EXPECT_EQ(left("graph @g(x: f64[2,2]) { y = matmul(x, x) return y }", {}),
            "y matmul: left as it is: it computes in f64, not in f32\n");
  EXPECT_EQ(left("graph @g(x: f32[2,2]) { y = exp(x) return y }", {}),
            "g: left as it is: it has no products\n");
  EXPECT_EQ(left(R"(graph @g(c: f32[2,2]) {
        r = scan(c, body=graph @step(c: f32[2,2]) { m = matmul(c, c) return m }, length=3, carries=1)
        return r
      })",
                 {}),
            "m matmul: left as it is: it is in a body of r scan, where no range is known\n");
}

}  // namespace
}  // namespace rlx
