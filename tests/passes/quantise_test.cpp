#include "rlx/passes/quantise.h"

#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using ir::NamedLiterals;
using test::error_of;
using test::graph;

TEST(TensorCode, covers_the_range_and_has_a_code_for_zero) {
  const TensorCode s = symmetric_code(-3, 1);
  EXPECT_DOUBLE_EQ(s.scales[0], 3.0 / 127);
  EXPECT_EQ(s.zero_points[0], 0);
  for (const auto& [low, high] : {std::pair{0.0, 6.0}, {-1.0, 3.0}, {-5.0, -1.0}, {2.0, 3.0}, {0.0, 0.0}}) {
    const TensorCode a = affine_code(low, high);
    const auto code = [&](double x) { return std::nearbyint(x / a.scales[0]) + double(a.zero_points[0]); };
    EXPECT_GE(code(std::min(low, 0.0)), -129) << low;
    EXPECT_LE(code(std::max(high, 0.0)), 128) << high;
    EXPECT_GT(a.scales[0], 0);
  }
}

// Shared taps and outputs read the rounded value too.
TEST(InsertRounding, gives_everybody_the_rounded_value) {
  const ir::Graph g = graph("graph @g(x: f32[4]) { y = relu(x) z = add(y, y) return z, y }");
  const ir::Graph after = insert_rounding(g, {{"y", {.scales = {0.5}, .zero_points = {3}}}});
  EXPECT_EQ(after, graph(R"(graph @g(x: f32[4]) {
    y = relu(x)
    q = quantize(y, scale=0.5, zero_point=3)
    d = dequantize(q, scale=0.5, zero_point=3)
    z = add(d, d)
    return z, y=d
  })"))
      << cat(after);
  EXPECT_EQ(insert_rounding(g, {}), g);
  const NamedLiterals out =
      ir::interpret(after, NamedLiterals{{"x", Literal::of<float>({4}, {-1, 0.6f, 0.8f, 1000})}});
  EXPECT_EQ(out.at("y"), Literal::of<float>({4}, {0, 0.5f, 1, 62}));
}

TEST(InsertRounding, takes_a_scale_for_each_channel_of_a_param) {
  const ir::Graph g = graph("graph @g(x: f32[1,2], param w: f32[2,2]) { y = matmul(x, w) return y }");
  const ir::Graph after =
      insert_rounding(g, {{"w", {.axis = 1, .scales = {1, 0.25}, .zero_points = {0, 0}}}});
  const NamedLiterals out =
      ir::interpret(after, NamedLiterals{{"x", Literal::of<float>({1, 2}, {1, 1})},
                                         {"w", Literal::of<float>({2, 2}, {0.4f, 0.4f, 1.4f, 1.4f})}});
  EXPECT_EQ(out.at("y"), Literal::of<float>({1, 2}, {1, 2}));
}

TEST(InsertRounding, refuses_what_does_not_fit) {
  const ir::Graph g = graph("graph @g(x: f32[4], i: i32[4]) { y = relu(x) return y, i }");
  EXPECT_EQ(error_of([&] { insert_rounding(g, {{"q", {}}, {"r", {}}}); }),
            "quantise: no value of graph 'g' is called 'q', 'r'");
  EXPECT_EQ(error_of([&] { insert_rounding(g, {{"i", {}}}); }),
            "quantise: 'i' is i32[4], only f32 can be rounded");
  EXPECT_EQ(error_of([&] { insert_rounding(g, {{"y", {.axis = 0}}}); }),
            "quantise: 'y' is f32[4], it has 1 scales and 1 zero points; 4 of each expected");
  EXPECT_EQ(error_of([&] { insert_rounding(g, {{"y", {.scales = {0}}}}); }),
            "quantise: 'y' is f32[4], its scale 0.0 is not a positive number");
  EXPECT_EQ(error_of([&] { insert_rounding(g, {{"y", {.axis = 2}}}); }),
            "quantise: 'y' is f32[4], it has no axis 2");
}

// The original dropped the operators between the two roundings.
TEST(MergeRoundings, keeps_what_stands_between) {
  const char* const text = R"(graph @g(x: f32[2,3], s: f32[1]) {
    a:2 = fake_quantize(x, s, scale_mode=fixed)
    b = relu(a)
    c = reshape(b, shape=(3,2))
    d:2 = fake_quantize(c, s, scale_mode=fixed)
    return d
  })";
  ir::Rewritten after = merge_roundings(graph(text));
  EXPECT_EQ(after.changes, 1u);
  after.graph.erase_dead();
  EXPECT_EQ(after.graph.len(), 5u) << cat(after.graph);
  const NamedLiterals in = {{"x", ir::sample_literal("f32[2,3]", 3)},
                            {"s", Literal::of<float>({1}, {0.05f})}};
  const Literal got = ir::interpret(after.graph, in).begin()->second,
                want = ir::interpret(graph(text), in).begin()->second;
  EXPECT_EQ(got, want);
  bool zeros = false;
  for (const double v : got.to_reals()) zeros = zeros || v == 0;
  EXPECT_TRUE(zeros);  // relu is still there
}

TEST(MergeRoundings, leaves_other_bits_scales_modes_and_operators) {
  const auto changes = [](std::string_view between, std::string_view first, std::string_view second) {
    return merge_roundings(
               graph(cat("graph @g(x: f32[4], s: f32[1], t: f32[1]) { a:2 = fake_quantize(x, ", first,
                         ") b = ", between, "(a) d:2 = fake_quantize(b, ", second, ") return d }")))
        .changes;
  };
  EXPECT_EQ(changes("relu", "s, scale_mode=fixed", "s, scale_mode=fixed"), 1u);
  EXPECT_EQ(changes("exp", "s, scale_mode=fixed", "s, scale_mode=fixed"), 0u);
  EXPECT_EQ(changes("relu", "s, scale_mode=fixed, bits=4", "s, scale_mode=fixed"), 0u);
  EXPECT_EQ(changes("relu", "s, scale_mode=fixed", "t, scale_mode=fixed"), 0u);
}

TEST(QuantiseProducts, sums_codes_with_and_without_a_bias) {
  for (const bool biased : {false, true}) {
    const ir::Graph g = graph(cat(R"(graph @g(x: i8[3,16], w: i8[16,5], b: f32[5]) {
      xf = dequantize(x, scale=0.02, zero_point=3)
      wf = dequantize(w, scale=0.01)
      m = matmul(xf, wf)
      )",
                                  biased ? "h = add(m, b)" : "h = neg(m) k = neg(h)", "\n", R"(
      y = quantize()",
                                  biased ? "h" : "m", R"(, scale=0.05, zero_point=-4)
      return y
    })"));
    ir::Rewritten after = quantise_products(g);
    EXPECT_EQ(after.changes, 1u) << cat(after.graph);
    after.graph.erase_dead();
    EXPECT_TRUE(after.graph.verify().empty());
    EXPECT_EQ(cat(after.graph).find("dequantize"), std::string::npos) << cat(after.graph);
    Literals in;
    for (const ir::NodeId id : g.leaves())
      in.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 5 + in.size()));
    const Literal got = ir::interpret(after.graph, in)[0], want = ir::interpret(g, in)[0];
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < got.elements(); ++i) EXPECT_NEAR(got.real_at(i), want.real_at(i), 1) << i;
  }
}

TEST(QuantiseProducts, leaves_products_that_are_not_rounded) {
  const ir::Graph g = graph(R"(graph @g(x: i8[2,2], w: i8[2,2]) {
    xf = dequantize(x, scale=0.02)
    wf = dequantize(w, scale=0.01)
    y = matmul(xf, wf)
    return y
  })");
  EXPECT_EQ(quantise_products(g).changes, 0u);
}

}  // namespace
}  // namespace rlx::passes
