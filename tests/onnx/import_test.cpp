// What becomes of small models: types with symbols, sizes followed, inputs that decide sizes, bounds, functions, bodies.
#include "rlx/onnx/import.h"

#include <gtest/gtest.h>

#include "rlx/io/onnx/read.h"
#include "tests/onnx/model_bytes.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace test;

onnx::Imported imported(const std::string& bytes, const NamedLiterals& values = {}) {
  const auto owner = std::make_shared<std::string>(bytes);
  return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"),
                            {.values = values});
}

Shape output_type(const onnx::Imported& m, size_t i = 0) {
  return m.program.graph.shape(m.program.graph.outputs()[i]);
}

TEST(OnnxImport, ShapeArithmeticLeavesNoNode) {
  // y = reshape(x, [shape(x)[0] * shape(x)[1], 6])
  const Message g = graph({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"b"}),
                           node("Gather", {"s", "one"}, {"t"}), node("Mul", {"b", "t"}, {"bt"}),
                           node("Concat", {"bt", "six"}, {"to"}, {attribute("axis", int64_t(0))}),
                           node("Reshape", {"x", "to"}, {"y"})},
                          {value("x", {"batch", "time", "6"})}, {value("y", {"n", "6"})},
                          {ints("zero", {1}, {0}), ints("one", {1}, {1}), ints("six", {1}, {6})});
  const onnx::Imported m = imported(model(g));
  EXPECT_EQ(cat(output_type(m)), "f32[batch*time,6]");
  EXPECT_EQ(m.program.graph.len(), 2u) << m.program.graph.to_text();
}

TEST(OnnxImport, AnInputThatDecidesASizeBecomesPartOfTheGraph) {
  const Message g =
      graph({node("Reshape", {"x", "to"}, {"y"})}, {value("x", {"6"}), value("to", {"2"}, ElementType::i64)},
            {value("y", {"a", "b"})});
  EXPECT_NE(message_of([&] { imported(model(g)); }).find("depends on the contents of input 'to'"),
            std::string::npos);
  const onnx::Imported m = imported(model(g), {{"to", Literal::of<int64_t>({2}, {3, 2})}});
  EXPECT_EQ(cat(output_type(m)), "f32[3,2]");
  EXPECT_EQ(m.fixed, std::vector<std::string>{"to"});
}

TEST(OnnxImport, SizesThatDependOnDataAreBoundedAndCounted) {
  const Message g = graph({node("NonZero", {"x"}, {"y"})}, {value("x", {"2", "3"})},
                          {value("y", {"2", "n"}, ElementType::i64)});
  const onnx::Imported m = imported(model(g));
  ASSERT_EQ(m.bounded.size(), 1u);
  EXPECT_EQ(m.bounded[0].axis, 1);
  const auto out = m.program.interpret({{"x", Literal::of<float>({2, 3}, {0, 1, 0, 2, 0, 3})}});
  EXPECT_EQ(out.at(m.bounded[0].count).integer_at(0), 3);
  EXPECT_EQ(out.at("y").to_integers(), (std::vector<int64_t>{0, 1, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0}));
}

TEST(OnnxImport, FunctionsAreInlined) {
  const Message twice = function("Twice", {"a"}, {"b"}, {node("Add", {"a", "a"}, {"b"})});
  const Message g = graph({node("Twice", {"x"}, {"h"}, {}, "f"), node("Twice", {"h"}, {"y"}, {}, "f")},
                          {value("x", {"2"})}, {value("y", {"2"})});
  const auto out =
      imported(model(g, 21, {twice})).program.interpret({{"x", Literal::of<float>({2}, {1, -3})}});
  EXPECT_EQ(out.at("y").to_reals(), (std::vector<double>{4, -12}));
}

TEST(OnnxImport, BodiesSeeTheNamesAroundThem) {
  const Message yes = graph({node("Mul", {"x", "w"}, {"a"})}, {}, {value("a", {"2"})});
  const Message no = graph({node("Neg", {"x"}, {"a"})}, {}, {value("a", {"2"})});
  const Message g = graph(
      {node("ReduceSum", {"x"}, {"s"}, {attribute("keepdims", int64_t(0))}),
       node("Greater", {"s", "zero"}, {"c"}),
       node("If", {"c"}, {"y"}, {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)})},
      {value("x", {"2"})}, {value("y", {"2"})}, {floats("w", {2}, {2, 3}), floats("zero", {}, {0})});
  const onnx::Imported m = imported(model(g));
  EXPECT_EQ(m.program.interpret({{"x", Literal::of<float>({2}, {1, 1})}}).at("y").to_reals(),
            (std::vector<double>{2, 3}));
  EXPECT_EQ(m.program.interpret({{"x", Literal::of<float>({2}, {1, -4})}}).at("y").to_reals(),
            (std::vector<double>{-1, 4}));
}

// As converters to f16 write them, which put their casts at the end.
TEST(OnnxImport, NodesMayStandBeforeThoseThatMakeWhatTheyUse) {
  const Message yes = graph({node("Mul", {"h", "h"}, {"a"})}, {}, {value("a", {"2"})});
  const Message no = graph({node("Neg", {"h"}, {"a"})}, {}, {value("a", {"2"})});
  const Message g = graph(
      {node("If", {"c"}, {"y"}, {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)}),
       node("Greater", {"s", "zero"}, {"c"}), node("Add", {"x", "x"}, {"h"}),
       node("ReduceSum", {"h"}, {"s"}, {attribute("keepdims", int64_t(0))})},
      {value("x", {"2"})}, {value("y", {"2"})}, {floats("zero", {}, {0})});
  EXPECT_EQ(imported(model(g)).program.interpret({{"x", Literal::of<float>({2}, {1, 2})}}).at("y").to_reals(),
            (std::vector<double>{4, 16}));
  const Message circle = graph({node("Add", {"x", "b"}, {"a"}), node("Neg", {"a"}, {"b"})},
                               {value("x", {"2"})}, {value("b", {"2"})});
  EXPECT_NE(message_of([&] { imported(model(circle)); }).find("which no node before it makes"),
            std::string::npos);
}

TEST(OnnxImport, WeightsBecomeParamsUnderTheirNames) {
  std::vector<float> w(12);
  for (size_t i = 0; i < w.size(); ++i) w[i] = float(i);
  const Message g = graph({node("MatMul", {"x", "w"}, {"y"})}, {value("x", {"n", "3"})},
                          {value("y", {"n", "4"})}, {floats("w", {3, 4}, w)});
  const onnx::Imported m = imported(model(g));
  ASSERT_TRUE(m.program.weights.contains("w"));
  EXPECT_EQ(m.program.graph.params().size(), 1u);
  EXPECT_EQ(cat(output_type(m)), "f32[n,4]");
}

// Numbers of 2^63 and more: order, quotients and conversions are those of unsigned integers.
TEST(OnnxImport, LargeUnsignedIntegersKeepTheirOrderAndSize) {
  const auto u = [](uint64_t v) { return int64_t(v); };
  const uint64_t big = 0xF000000000000000u;
  const Message g =
      graph({node("Less", {"a", "b"}, {"less"}), node("Div", {"a", "b"}, {"q"}),
             node("Mod", {"a", "b"}, {"r"}), node("Max", {"a", "b"}, {"most"}),
             node("ReduceMin", {"a"}, {"least"}, {attribute("keepdims", int64_t(0))}),
             node("Cast", {"a"}, {"real"}, {attribute("to", int64_t(ElementType::f64))}),
             node("Cast", {"real"}, {"back"}, {attribute("to", int64_t(ElementType::u64))}),
             node("BitShift", {"a", "three"}, {"down"}, {attribute("direction", std::string("RIGHT"))})},
            {value("a", {"4"}, ElementType::u64), value("b", {"4"}, ElementType::u64),
             value("three", {"1"}, ElementType::u64)},
            {value("less", {"4"}, ElementType::bool_), value("q", {"4"}, ElementType::u64),
             value("r", {"4"}, ElementType::u64), value("most", {"4"}, ElementType::u64),
             value("least", {}, ElementType::u64), value("real", {"4"}, ElementType::f64),
             value("back", {"4"}, ElementType::u64), value("down", {"4"}, ElementType::u64)});
  const auto out =
      imported(model(g)).program.interpret({{"a", Literal::of<int64_t>({4}, {u(big), 7, u(big + 9), 100})},
                                            {"b", Literal::of<int64_t>({4}, {10, u(big), u(big), 7})},
                                            {"three", Literal::of<int64_t>({1}, {3})}});
  EXPECT_EQ(out.at("less").to_integers(), (std::vector<int64_t>{0, 1, 0, 0}));
  EXPECT_EQ(out.at("q").to_integers(), (std::vector<int64_t>{u(big / 10), 0, 1, 14}));
  EXPECT_EQ(out.at("r").to_integers(), (std::vector<int64_t>{u(big % 10), 7, 9, 2}));
  EXPECT_EQ(out.at("most").to_integers(), (std::vector<int64_t>{u(big), u(big), u(big + 9), 100}));
  EXPECT_EQ(out.at("least").to_integers(), (std::vector<int64_t>{7}));
  EXPECT_EQ(out.at("real").to_reals(), (std::vector<double>{double(big), 7, double(big), 100}));
  EXPECT_EQ(out.at("back").to_integers(), (std::vector<int64_t>{u(big), 7, u(big), 100}));
  EXPECT_EQ(out.at("down").to_integers(), (std::vector<int64_t>{u(big >> 3), 0, u((big + 9) >> 3), 12}));
}

// One score s = x[0] - x[1] + 0.5: above 0 it is the first class, and the scores are -s, s.
TEST(OnnxImport, AMachineOfTwoClassesWithoutProbabilities) {
  const Message g = graph(
      {node("SVMClassifier", {"x"}, {"label", "scores"},
            {attribute("kernel_type", std::string("LINEAR")),
             attribute("kernel_params", std::vector<float>{0, 0, 0}),
             attribute("support_vectors", std::vector<float>{1, 0, 0, 1}),
             attribute("vectors_per_class", std::vector<int64_t>{1, 1}),
             attribute("coefficients", std::vector<float>{1, -1}), attribute("rho", std::vector<float>{0.5f}),
             attribute("classlabels_ints", std::vector<int64_t>{7, 9})},
            "ai.onnx.ml")},
      {value("x", {"n", "2"})}, {value("label", {"n"}, ElementType::i64), value("scores", {"n", "2"})});
  const auto out = imported(model(g)).program.interpret({{"x", Literal::of<float>({2, 2}, {2, 1, 0, 3})}});
  EXPECT_EQ(out.at("label").to_integers(), (std::vector<int64_t>{7, 9}));
  EXPECT_EQ(out.at("scores").to_reals(), (std::vector<double>{-1.5, 1.5, 2.5, -2.5}));
}

// As PyTorch and ONNX Runtime have it: only the neighbours of a place beyond the border are moved inside.
TEST(OnnxImport, CubicSamplesBeyondTheBorder) {
  for (const bool align : {false, true}) {
    const Message g = graph(
        {node("GridSample", {"x", "grid"}, {"y"},
              {attribute("mode", std::string("cubic")), attribute("padding_mode", std::string("border")),
               attribute("align_corners", int64_t(align))})},
        {value("x", {"1", "1", "3", "3"})}, {value("y", {"1", "1", "1", "3"})},
        {floats("grid", {1, 1, 3, 2}, {-1.3f, 0.2f, 0.9f, 1.2f, 0.1f, -0.4f})});
    const Literal x = Literal::of<float>({1, 1, 3, 3}, {0, 1, 4, 9, 16, 25, 36, 49, 64});
    const auto y = imported(model(g, 20)).program.interpret({{"x", x}}).at("y").to_reals();
    const std::vector<double> want = align ? std::vector<double>{13.664341, 66.558434, 7.3544278}
                                           : std::vector<double>{17.508583, 66.615578, 5.3045506};
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(y[i], want[i], 1e-5 * want[i]) << align << i;
  }
}

// x[x > 0]: the places of a mask, picked.
TEST(OnnxImport, ElementsPickedByAMaskAreBounded) {
  const Message g = graph({node("Greater", {"x", "zero"}, {"m"}), node("NonZero", {"m"}, {"p"}),
                           node("Transpose", {"p"}, {"t"}), node("GatherND", {"x", "t"}, {"y"})},
                          {value("x", {"2", "3"})}, {value("y", {"n"})}, {floats("zero", {}, {0})});
  const onnx::Imported m = imported(model(g));
  ASSERT_EQ(m.bounded.size(), 1u);
  const auto out = m.program.interpret({{"x", Literal::of<float>({2, 3}, {-1, 2, 0, 4, -5, 6})}});
  ASSERT_EQ(out.at(m.bounded[0].count).integer_at(0), 3);
  const auto y = out.at("y").to_reals();
  EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 3), (std::vector<double>{2, 4, 6}));
}

TEST(OnnxImport, WhatCannotBeImportedNamesTheNode) {
  const auto refusal = [](const Message& g) { return message_of([&] { imported(model(g)); }); };
  EXPECT_EQ(
      refusal(graph({node("Frobnicate", {"x"}, {"y"})}, {value("x", {"2"})}, {value("y", {"2"})})),
      "onnx: Frobnicate that makes 'y': operator Frobnicate of version 21 is not supported; 'rlx onnx ops' lists those that are");
  EXPECT_NE(refusal(graph({node("Relu", {"x"}, {"y"}, {attribute("slope", int64_t(1))})}, {value("x", {"2"})},
                          {value("y", {"2"})}))
                .find("attribute 'slope' is not one of Relu"),
            std::string::npos);
  EXPECT_NE(refusal(graph({node("Identity", {"x"}, {"y"})}, {value("x", {"2"}, ElementType::string)},
                          {value("y", {"2"})}))
                .find("input 'x' holds elements of type string"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx
