// What single operators mean where their texts leave little room: modes, windows, nothing to reduce.
#include <gtest/gtest.h>

#include <limits>

#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "tests/onnx/model_bytes.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace test;

onnx::Imported imported(const Message& g, int64_t opset) {
  const auto owner = std::make_shared<std::string>(model(g, opset));
  return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"));
}

TEST(OnnxOperators, SpaceToDepthInBothOrders) {
  const auto run = [](const std::string& mode) {
    const Message g = graph(
        {node("SpaceToDepth", {"x"}, {"y"}, {attribute("blocksize", int64_t(2)), attribute("mode", mode)})},
        {value("x", {"1", "2", "2", "2"})}, {value("y", {"1", "8", "1", "1"})});
    return imported(g, 28)
        .program.interpret({{"x", Literal::of<float>({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}})
        .at("y")
        .to_reals();
  };
  EXPECT_EQ(run("DCR"), (std::vector<double>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(run("CRD"), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_NE(message_of([&] { run("RCD"); }).find("mode is 'RCD'; it must be DCR or CRD"), std::string::npos);
}

TEST(OnnxOperators, SwiGluGatesItsSecondOperand) {
  const Message g = graph({node("SwiGLU", {"a", "b"}, {"y"}, {attribute("alpha", 2.0f)})},
                          {value("a", {"2"}), value("b", {"2"})}, {value("y", {"2"})});
  const auto y =
      imported(g, 28)
          .program
          .interpret({{"a", Literal::of<float>({2}, {1, -1})}, {"b", Literal::of<float>({2}, {3, 5})}})
          .at("y")
          .to_reals();
  EXPECT_NEAR(y[0], 3 * 0.880797078, 1e-6);
  EXPECT_NEAR(y[1], -5 * 0.119202922, 1e-6);
}

// With equal scores each query gives the mean of the keys it sees: key j has the value j.
TEST(OnnxOperators, AttentionWithinAWindow) {
  const auto run = [](int64_t causal, int64_t left, int64_t right) {
    const Message g = graph({node("Attention", {"q", "k", "v"}, {"y"},
                                  {attribute("is_causal", causal), attribute("left_window_size", left),
                                   attribute("right_window_size", right)})},
                            {value("q", {"1", "1", "4", "2"}), value("k", {"1", "1", "6", "2"}),
                             value("v", {"1", "1", "6", "1"})},
                            {value("y", {"1", "1", "4", "1"})});
    return imported(g, 25)
        .program
        .interpret({{"q", Literal::zeros(Shape(DType::f32, {1, 1, 4, 2}))},
                    {"k", Literal::zeros(Shape(DType::f32, {1, 1, 6, 2}))},
                    {"v", Literal::of<float>({1, 1, 6, 1}, {0, 1, 2, 3, 4, 5})}})
        .at("y")
        .to_reals();
  };
  EXPECT_EQ(run(0, 2, 1), (std::vector<double>{0.5, 1, 1.5, 2.5}));
  EXPECT_EQ(run(1, 1, 3), (std::vector<double>{0, 0.5, 1.5, 2.5}));
  EXPECT_EQ(run(0, -1, 0), (std::vector<double>{0, 0.5, 1, 1.5}));
  EXPECT_EQ(run(0, 0, -1), (std::vector<double>{2.5, 3, 3.5, 4}));
}

TEST(OnnxOperators, ExtremesOfNoBools) {
  const auto run = [](const std::string& op) {
    const Message g = graph({node(op, {"x", "axes"}, {"y"}, {attribute("keepdims", int64_t(0))})},
                            {value("x", {"2", "0"}, ElementType::bool_)},
                            {value("y", {"2"}, ElementType::bool_)}, {ints("axes", {1}, {1})});
    return imported(g, 20)
        .program.interpret({{"x", Literal::zeros(Shape(DType::bool_, {2, 0}))}})
        .at("y")
        .to_integers();
  };
  EXPECT_EQ(run("ReduceMax"), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(run("ReduceMin"), (std::vector<int64_t>{1, 1}));
}

// Factors are f32: ten times 0.7 is 7, and place 3 of a picture of 0.6 times the size is place 5 of the picture.
TEST(OnnxOperators, ResizeCountsInTheTypeOfItsFactors) {
  const auto run = [](float factor) {
    const Message g =
        graph({node("Resize", {"x", "", "factors"}, {"y"},
                    {attribute("mode", std::string("nearest")),
                     attribute("coordinate_transformation_mode", std::string("asymmetric")),
                     attribute("nearest_mode", std::string("floor"))})},
              {value("x", {"1", "10"})}, {value("y", {"1", "n"})}, {floats("factors", {2}, {1, factor})});
    return imported(g, 19)
        .program.interpret({{"x", Literal::of<float>({1, 10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}})
        .at("y")
        .to_reals();
  };
  EXPECT_EQ(run(0.7f), (std::vector<double>{0, 1, 2, 4, 5, 7, 8}));
  EXPECT_EQ(run(0.6f), (std::vector<double>{0, 1, 3, 5, 6, 8}));
}

// What has no expression over symbols may have a value at a size: such models ask for values, others are refused.
TEST(OnnxOperators, AFactorOfAnOpenSizeAsksForValues) {
  const Message g = graph({node("Resize", {"x", "", "factors"}, {"y"})}, {value("x", {"1", "n"})},
                          {value("y", {"1", "m"})}, {floats("factors", {2}, {1, 1.7f})});
  const auto owner = std::make_shared<std::string>(model(g, 19));
  const io::onnx::Model m = io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx");
  try {
    onnx::import_model(m);
    ADD_FAILURE();
  } catch (const onnx::Unsupported& e) {
    ADD_FAILURE() << e.what();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("for n elements; give values to the import"), std::string::npos) << e.what();
  }
  const NamedLiterals given{{"x", Literal::of<float>({1, 4}, {0, 1, 2, 3})}};
  EXPECT_EQ(onnx::import_model(m, {.values = given}).program.interpret(given).at("y").to_reals(),
            (std::vector<double>{0, 0, 1, 2, 2, 3}));
}

TEST(OnnxOperators, RealResultsOfWholeNumbersAreCut) {
  const Message g = graph({node("Pow", {"x", "e"}, {"p"}), node("ReduceLogSumExp", {"x"}, {"l"})},
                          {value("x", {"4"}, ElementType::i32)},
                          {value("p", {"4"}, ElementType::i32), value("l", {"1"}, ElementType::i32)},
                          {floats("e", {4}, {1.9f, 2, -1, 0.5f})});
  const auto out = imported(g, 18).program.interpret({{"x", Literal::of<int32_t>({4}, {3, 10, 2, 15})}});
  EXPECT_EQ(out.at("p").to_integers(), (std::vector<int64_t>{8, 100, 0, 3}));
  EXPECT_EQ(out.at("l").to_integers(), (std::vector<int64_t>{15}));
}

// Places are cut to the axis before they are counted: a start behind either end is the nearest element, and the largest
// number of either width as an end backwards means "through the first element" (as in ONNX Runtime).
TEST(OnnxOperators, SlicesThatBeginOrEndBeyondTheAxis) {
  const int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  const int64_t high32 = std::numeric_limits<int32_t>::max();
  const auto run = [](int64_t size, int64_t start, int64_t end, int64_t step, const std::string& dim) {
    const Message g =
        graph({node("Slice", {"x", "s", "e", "a", "t"}, {"y"})}, {value("x", {dim})}, {value("y", {"m"})},
              {ints("s", {1}, {start}), ints("e", {1}, {end}), ints("a", {1}, {0}), ints("t", {1}, {step})});
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i) values.push_back(float(i));
    const auto owner = std::make_shared<std::string>(model(g, 19));
    const NamedLiterals given{{"x", Literal::of<float>({size}, values)}};
    return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"),
                              {.values = given})
        .program.interpret(given)
        .at("y")
        .to_reals();
  };
  using Reals = std::vector<double>;
  for (const bool open : {false, true}) {
    const auto sliced = [&](int64_t size, int64_t start, int64_t end, int64_t step) {
      return run(size, start, end, step, open ? "n" : std::to_string(size));
    };
    EXPECT_EQ(sliced(1, -2, low, -2), (Reals{0})) << open;
    EXPECT_EQ(sliced(2, -3, low, -3), (Reals{0})) << open;
    EXPECT_EQ(sliced(4, -8, -7, -1), (Reals{0})) << open;
    EXPECT_EQ(sliced(4, 9, 0, -2), (Reals{3, 1})) << open;
    EXPECT_EQ(sliced(3, -1, high32, -2), (Reals{2, 0})) << open;
    EXPECT_EQ(sliced(3, low, high, -2), (Reals{0})) << open;
    EXPECT_EQ(sliced(3, 1, high32, 1), (Reals{1, 2})) << open;
    EXPECT_EQ(sliced(3, low, high, 2), (Reals{0, 2})) << open;
    EXPECT_EQ(sliced(3, high, low, 1), (Reals{})) << open;
    EXPECT_EQ(sliced(3, 0, low, 1), (Reals{})) << open;
  }
}

TEST(OnnxOperators, TransposedConvolutionsWithGapsAddNothingForSame) {
  const auto shape = [](const std::string& mode) {
    const Message g =
        graph({node("ConvTranspose", {"x", "w"}, {"y"},
                    {attribute("auto_pad", mode), attribute("strides", std::vector<int64_t>{3})})},
              {value("x", {"1", "1", "3"})}, {value("y", {"1", "1", "m"})}, {floats("w", {1, 1, 2}, {1, 2})});
    return imported(g, 19)
        .program.interpret({{"x", Literal::of<float>({1, 1, 3}, {1, 2, 3})}})
        .at("y")
        .to_reals();
  };
  EXPECT_EQ(shape("SAME_UPPER"), (std::vector<double>{1, 2, 0, 2, 4, 0, 3, 6}));
  EXPECT_EQ(shape("SAME_LOWER"), shape("SAME_UPPER"));
}

TEST(OnnxOperators, ResizeMayLeaveNothing) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    const Message g = graph({node("Resize", {"x", "", "factors"}, {"y"}, {attribute("mode", mode)})},
                            {value("x", {"1", "1", "1", "4"})}, {value("y", {"a", "b", "c", "d"})},
                            {floats("factors", {4}, {1, 1, 0.5f, 2})});
    const auto y =
        imported(g, 19).program.interpret({{"x", Literal::of<float>({1, 1, 1, 4}, {0, 1, 2, 3})}}).at("y");
    EXPECT_EQ(y.shape(), Shape(DType::f32, {1, 1, 0, 8})) << mode;
  }
}

// A symbol that joins a number is taken for it; where it is 1 the graph is another one.
TEST(OnnxOperators, ASizeThatJoinsANumberMayBeOne) {
  const Message g =
      graph({node("Add", {"x", "z"}, {"y"})}, {value("x", {"n"}), value("z", {"3"})}, {value("y", {"3"})});
  const auto owner = std::make_shared<std::string>(model(g, 19));
  const io::onnx::Model m = io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx");
  const NamedLiterals given{{"x", Literal::of<float>({1}, {5})}, {"z", Literal::of<float>({3}, {1, 2, 3})}};
  EXPECT_EQ(onnx::import_model(m, {.values = given}).program.interpret(given).at("y").to_reals(),
            (std::vector<double>{6, 7, 8}));
}

// ONNX Runtime forgets what a sequence of no steps started with; the standard does not say.
TEST(OnnxOperators, SequencesWithoutStepsEndInZero) {
  const Message g = graph(
      {node("RNN", {"x", "w", "r", "", "lengths", "h"}, {"y", "last"},
            {attribute("activations", std::vector<std::string>{"Relu"})})},
      {value("x", {"2", "2", "1"}), value("lengths", {"2"}, ElementType::i32), value("h", {"1", "2", "1"})},
      {value("y", {"2", "1", "2", "1"}), value("last", {"1", "2", "1"})},
      {floats("w", {1, 1, 1}, {1}), floats("r", {1, 1, 1}, {2})});
  const auto out = imported(g, 19).program.interpret({{"x", Literal::of<float>({2, 2, 1}, {1, 2, 3, 4})},
                                                      {"lengths", Literal::of<int32_t>({2}, {0, 1})},
                                                      {"h", Literal::of<float>({1, 2, 1}, {5, 6})}});
  EXPECT_EQ(out.at("y").to_reals(), (std::vector<double>{0, 14, 0, 0}));
  EXPECT_EQ(out.at("last").to_reals(), (std::vector<double>{0, 14}));
}

// 450 * (0.05 * 0.02 / 0.3) is 1.5 in f32 and goes to 2; in f64 of the same f32 scales it is a little less.
TEST(OnnxOperators, CodesOfProductsAreRoundedInTheTypeOfTheirScales) {
  const auto codes = [](const char* name, ElementType t, int64_t v) {
    return Message().number(2, int64_t(t)).number(5, v).text(8, name);
  };
  const Message g =
      graph({node("QLinearMatMul", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"})},
            {value("a", {"1", "1"}, ElementType::u8), value("b", {"1", "1"}, ElementType::i8)},
            {value("y", {"1", "1"}, ElementType::u8)},
            {floats("as", {}, {0.05f}), codes("az", ElementType::u8, 9), floats("bs", {}, {0.02f}),
             codes("bz", ElementType::i8, 1), floats("ys", {}, {0.3f}), codes("yz", ElementType::u8, 100)});
  const auto y = imported(g, 21).program.interpret(
      {{"a", Literal::of<uint8_t>({1, 1}, {18})}, {"b", Literal::of<int8_t>({1, 1}, {51})}});
  EXPECT_EQ(y.at("y").to_integers(), (std::vector<int64_t>{102}));
}

// Without an epsilon there is next to none: small rows are normed as large ones are.
TEST(OnnxOperators, SkippingNormsHaveNextToNoEpsilonByDefault) {
  for (const std::string op : {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}) {
    const Message g = graph({node(op, {"x", "s", "g"}, {"y"}, {}, "com.microsoft")},
                            {value("x", {"1", "1", "2"}), value("s", {"1", "1", "2"})},
                            {value("y", {"1", "1", "2"})}, {floats("g", {2}, {1, 1})});
    const auto y = imported(g, 17).program.interpret({{"x", Literal::of<float>({1, 1, 2}, {1e-3f, -1e-3f})},
                                                      {"s", Literal::of<float>({1, 1, 2}, {0, 0})}});
    EXPECT_NEAR(y.at("y").real_at(0), 1, 1e-5) << op;
  }
}

}  // namespace
}  // namespace rlx
