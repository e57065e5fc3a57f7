// Operators over windows and grids with sizes left open: bound to a size, they give what the model of that size gives.
#include <gtest/gtest.h>

#include "rlx/io/onnx/read.h"
#include "rlx/ir/sample.h"
#include "rlx/onnx/import.h"
#include "tests/onnx/model_bytes.h"

namespace rlx {
namespace {

using namespace test;
using Ints = std::vector<int64_t>;

Program imported(const std::string& bytes) {
  const auto owner = std::make_shared<std::string>(bytes);
  return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx")).program;
}

struct Case {
  std::string name, op;
  std::vector<Message> attributes;
  std::vector<std::string> inputs;
  std::vector<Message> weights;
};

std::vector<Case> cases() {
  const auto ints = [](const char* name, Ints v) { return attribute(name, v); };
  const auto flag = [](const char* name) { return attribute(name, int64_t(1)); };
  const Message same = attribute("auto_pad", std::string("SAME_UPPER")),
                same_low = attribute("auto_pad", std::string("SAME_LOWER"));
  const Message k3 = ints("kernel_shape", {3, 3}), s2 = ints("strides", {2, 2}),
                pads = ints("pads", {1, 1, 1, 1}), uneven = ints("pads", {0, 1, 1, 0}),
                d2 = ints("dilations", {2, 2}), ceil = flag("ceil_mode"), counted = flag("count_include_pad");
  const std::vector<Message> w{floats("w", {1, 2, 3, 3}, std::vector<float>(18, 0.25f))};
  const std::vector<Message> grid{
      floats("w", {1, 2, 2, 2}, {-0.9f, 0.3f, 0.1f, 1.2f, 0.77f, -1.4f, 0.5f, 0.5f})};
  return {
      {"max_ceil", "MaxPool", {k3, s2, pads, ceil}, {"x"}, {}},
      {"max_ceil_s3", "MaxPool", {ints("kernel_shape", {2, 2}), ints("strides", {3, 3}), ceil}, {"x"}, {}},
      {"max_dilated", "MaxPool", {k3, s2, d2, ceil}, {"x"}, {}},
      {"max_uneven", "MaxPool", {k3, uneven}, {"x"}, {}},
      {"max_same", "MaxPool", {k3, s2, same}, {"x"}, {}},
      {"mean_ceil", "AveragePool", {k3, s2, pads, ceil}, {"x"}, {}},
      {"mean_ceil_counted", "AveragePool", {k3, s2, pads, ceil, counted}, {"x"}, {}},
      {"mean_uneven_counted", "AveragePool", {k3, s2, uneven, counted}, {"x"}, {}},
      {"mean_same", "AveragePool", {k3, s2, same_low}, {"x"}, {}},
      {"mean_same_counted", "AveragePool", {k3, s2, same, counted}, {"x"}, {}},
      {"norm_ceil", "LpPool", {k3, s2, pads, ceil}, {"x"}, {}},
      {"conv_same", "Conv", {s2, same}, {"x", "w"}, w},
      {"conv_same_dilated", "Conv", {s2, same_low, d2}, {"x", "w"}, w},
      {"grid", "GridSample", {}, {"x", "w"}, grid},
      {"grid_border",
       "GridSample",
       {attribute("padding_mode", std::string("border")), flag("align_corners")},
       {"x", "w"},
       grid},
      {"grid_reflection",
       "GridSample",
       {attribute("padding_mode", std::string("reflection")), attribute("mode", std::string("cubic"))},
       {"x", "w"},
       grid}};
}

std::string model_of(const Case& c, const std::vector<std::string>& sizes) {
  return model(
      graph({node(c.op, c.inputs, {"y"}, c.attributes)}, {value("x", {"1", "2", sizes[0], sizes[1]})},
            {value("y", {"a", "b", "c", "d"})}, c.weights),
      22);
}

TEST(OnnxOpenSizes, AreThoseOfTheModelWithTheSize) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Program open = imported(model_of(c, {"h", "w_"}));
    for (const Ints& size : {Ints{5, 6}, Ints{6, 5}, Ints{7, 9}, Ints{8, 8}, Ints{13, 10}}) {
      const Program fixed = imported(model_of(c, {std::to_string(size[0]), std::to_string(size[1])}));
      const Literal x = ir::sample_literal(cat(Shape(DType::f32, {1, 2, size[0], size[1]})), 7);
      const Literal got = open.interpret({{"x", x}}).at("y"), expected = fixed.interpret({{"x", x}}).at("y");
      ASSERT_EQ(cat(got.shape()), cat(expected.shape())) << cat(size);
      const auto a = got.to_reals(), b = expected.to_reals();
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << cat(size) << " at " << i;
    }
  }
}

// Windows of 3 with steps of 2 over 6 places and a pad at both ends: rounded up there are 4, the last of 2 places.
TEST(OnnxOpenSizes, ACountThatIsRoundedUpReachesBeyondThePadding) {
  const Message g = graph({node("AveragePool", {"x"}, {"y"},
                                {attribute("kernel_shape", Ints{3}), attribute("strides", Ints{2}),
                                 attribute("pads", Ints{1, 1}), attribute("ceil_mode", int64_t(1))})},
                          {value("x", {"1", "1", "n"})}, {value("y", {"1", "1", "m"})});
  const auto y =
      imported(model(g)).interpret({{"x", Literal::of<float>({1, 1, 6}, {1, 2, 3, 4, 5, 6})}}).at("y");
  EXPECT_EQ(y.to_reals(), (std::vector<double>{1.5, 3, 5, 6}));
}

// What a model computes from the size n of x, at n = 7, 5 and 3.
std::vector<Ints> computed_from_size(const std::vector<Message>& nodes, ElementType type = ElementType::i64) {
  std::vector<Message> all{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                           node("Sub", {"n", "five"}, {"d"}), node("Sub", {"one", "n"}, {"f"})};
  all.insert(all.end(), nodes.begin(), nodes.end());
  const Message g = graph(all, {value("x", {"n", "2"})}, {value("y", {}, type)},
                          {ints("zero", {}, {0}), ints("one", {}, {1}), ints("five", {}, {5})});
  const Program p = imported(model(g));
  std::vector<Ints> out;
  for (const int64_t n : {7, 5, 3})
    out.push_back(p.interpret({{"x", Literal::zeros(Shape(DType::f32, {n, 2}))}}).at("y").to_integers());
  return out;
}

TEST(OnnxOpenSizes, NumbersComputedFromSizesMayBeNegative) {
  using Sets = std::vector<Ints>;
  EXPECT_EQ(computed_from_size({node("Identity", {"d"}, {"y"})}), (Sets{{2}, {0}, {-2}}));
  EXPECT_EQ(computed_from_size({node("Identity", {"f"}, {"y"})}), (Sets{{-6}, {-4}, {-2}}));
  EXPECT_EQ(computed_from_size({node("Max", {"d", "zero"}, {"y"})}), (Sets{{2}, {0}, {0}}));
  EXPECT_EQ(computed_from_size({node("Max", {"zero", "f"}, {"y"})}), (Sets{{0}, {0}, {0}}));
  EXPECT_EQ(computed_from_size({node("Less", {"d", "zero"}, {"y"})}, ElementType::bool_),
            (Sets{{0}, {0}, {1}}));
  EXPECT_EQ(
      computed_from_size({node("Less", {"d", "zero"}, {"c"}), node("Where", {"c", "one", "five"}, {"y"})}),
      (Sets{{5}, {5}, {1}}));
}

TEST(OnnxOpenSizes, AScalarUnderSeveralAxesLosesOne) {
  const Message g = graph({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                           node("Unsqueeze", {"n", "both"}, {"u"}), node("Squeeze", {"u", "first"}, {"y"})},
                          {value("x", {"n", "2"})}, {value("y", {"1"}, ElementType::i64)},
                          {ints("zero", {}, {0}), ints("both", {2}, {0, 1}), ints("first", {1}, {0})});
  const Literal y = imported(model(g)).interpret({{"x", Literal::zeros(Shape(DType::f32, {3, 2}))}}).at("y");
  EXPECT_EQ(cat(y), "i64[1]{3}");
}

TEST(OnnxOpenSizes, RangesWithSteps) {
  const Message g = graph({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                           node("Range", {"one", "n", "two"}, {"y"})},
                          {value("x", {"n", "2"})}, {value("y", {"m"}, ElementType::i64)},
                          {ints("zero", {}, {0}), ints("one", {}, {1}), ints("two", {}, {2})});
  const Program p = imported(model(g));
  const auto at = [&](int64_t n) {
    return p.interpret({{"x", Literal::zeros(Shape(DType::f32, {n, 2}))}}).at("y").to_integers();
  };
  EXPECT_EQ(at(6), (Ints{1, 3, 5}));
  EXPECT_EQ(at(5), (Ints{1, 3}));
  EXPECT_EQ(at(1), (Ints{}));
}

// Sizes written into a list of sizes, as exporters do for an axis of a copy.
TEST(OnnxOpenSizes, AListOfSizesMayBeWrittenTo) {
  const Message g =
      graph({node("Shape", {"x"}, {"s"}), node("Shape", {"i"}, {"k"}),
             node("ScatterElements", {"s", "first", "k"}, {"to"}), node("Expand", {"one", "to"}, {"y"})},
            {value("x", {"n", "2"}), value("i", {"m"})}, {value("y", {"m", "2"})},
            {ints("first", {1}, {0}), floats("one", {}, {1})});
  const auto y = imported(model(g)).interpret(
      {{"x", Literal::zeros(Shape(DType::f32, {5, 2}))}, {"i", Literal::zeros(Shape(DType::f32, {3}))}});
  EXPECT_EQ(cat(y.at("y").shape()), "f32[3,2]");
}

// With values given, the graph is one that has their sizes: a slice may be cut, and a symbol may be 1 by chance.
TEST(OnnxOpenSizes, GivenValuesHaveSizesThatTheGraphForAllSizesHasNot) {
  const Message g = graph(
      {node("Slice", {"x", "three", "end", "zero"}, {"part"}), node("Add", {"x", "z"}, {"sum"})},
      {value("x", {"n", "2"}), value("z", {"m", "2"})}, {value("part", {"a", "2"}), value("sum", {"b", "2"})},
      {ints("three", {1}, {3}), ints("end", {1}, {1000}), ints("zero", {1}, {0})});
  const auto owner = std::make_shared<std::string>(model(g));
  const io::onnx::Model m = io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx");
  const NamedLiterals given{{"x", Literal::of<float>({2, 2}, {1, 2, 3, 4})},
                            {"z", Literal::of<float>({1, 2}, {5, 6})}};
  const auto out = onnx::import_model(m, {.values = given}).program.interpret(given);
  EXPECT_EQ(cat(out.at("part").shape()), "f32[0,2]");
  EXPECT_EQ(out.at("sum").to_reals(), (std::vector<double>{6, 8, 8, 10}));
}

TEST(OnnxOpenSizes, MinusOneIsASizeLeftOpen) {
  const Message g = graph({node("Neg", {"x"}, {"y"})}, {value("x", {"-1", "2"})}, {value("y", {"n", "2"})});
  const Literal y = imported(model(g)).interpret({{"x", Literal::of<float>({1, 2}, {1, 2})}}).at("y");
  EXPECT_EQ(y.to_reals(), (std::vector<double>{-1, -2}));
  const Message worse = graph({node("Neg", {"x"}, {"y"})}, {value("x", {"-2"})}, {value("y", {"n"})});
  EXPECT_THROW(imported(model(worse)), Error);
}

}  // namespace
}  // namespace rlx
