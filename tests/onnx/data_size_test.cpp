// Sizes that data decides, followed through what models compute from them.
#include <gtest/gtest.h>

#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "tests/onnx/model_bytes.h"

namespace rlx {
namespace {

using namespace test;
using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

constexpr int64_t kEnd = int64_t(1) << 62;

onnx::Imported imported(const Message& g) {
  const auto owner = std::make_shared<std::string>(model(g, 18));
  return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"));
}

// Output y as its shape and its numbers, cut to what is meant.
std::string meant(const onnx::Imported& m, const NamedLiterals& out) {
  const Literal& y = out.at("y");
  Dims dims = y.shape().dims();
  for (const auto& b : m.bounded) dims[size_t(b.axis)] = out.at(b.count).integer_at(0);
  std::string text = cat(Shape(y.dtype(), dims), "{");
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i;
    bool inside = true;
    for (int k = y.shape().rank() - 1; k >= 0; --k) {
      const int64_t n = y.shape().dims()[size_t(k)].value();
      inside = inside && rest % n < dims[size_t(k)].value();
      rest /= n;
    }
    if (inside) text += cat(text.back() == '{' ? "" : " ", int64_t(y.real_at(i)));
  }
  return text + "}";
}

// What nodes make of k: the rows of x [n, 2] that begin with a number above 0, of which there are s[0].
std::vector<std::string> of_chosen_rows(std::vector<Message> nodes, ElementType type = ElementType::f32) {
  const std::vector<Message> before{
      node("Gather", {"x", "i0"}, {"first"}, {attribute("axis", int64_t(1))}),
      node("Greater", {"first", "zero"}, {"mask"}),
      node("NonZero", {"mask"}, {"places"}),
      node("Squeeze", {"places", "v0"}, {"rows"}),
      node("Gather", {"x", "rows"}, {"k"}),
      node("Shape", {"k"}, {"s"}),
      node("Gather", {"s", "i0"}, {"count"}),
      node("Gather", {"s", "v0"}, {"counts"}),
  };
  nodes.insert(nodes.begin(), before.begin(), before.end());
  const onnx::Imported m =
      imported(graph(nodes, {value("x", {"n", "2"})}, {value("y", {}, type)},
                     {ints("i0", {}, {0}), ints("i1", {}, {1}), ints("v0", {1}, {0}), ints("v1", {1}, {1}),
                      ints("v2", {1}, {2}), ints("back", {1}, {-1}), ints("end", {1}, {kEnd}),
                      ints("front", {1}, {-kEnd}), floats("zero", {}, {0}), floats("one", {}, {1})}));
  std::vector<std::string> out;
  for (const Literal& x :
       {Literal::of<float>({4, 2}, {3, 1, -1, 5, 2, 6, 4, -2}), Literal::of<float>({2, 2}, {-1, 1, -2, 2})})
    out.push_back(meant(m, m.program.interpret({{"x", x}})));
  return out;
}

using Texts = std::vector<std::string>;

TEST(OnnxDataSizes, ShapesAreComputed) {
  EXPECT_EQ(of_chosen_rows({node("Identity", {"s"}, {"y"})}, ElementType::i64),
            (Texts{"i64[2]{3 2}", "i64[2]{0 2}"}));
  EXPECT_EQ(of_chosen_rows({node("Size", {"k"}, {"y"})}, ElementType::i64), (Texts{"i64[]{6}", "i64[]{0}"}));
  EXPECT_EQ(of_chosen_rows({node("Range", {"i1", "count", "i1"}, {"y"})}, ElementType::i64),
            (Texts{"i64[2]{1 2}", "i64[0]{}"}));
  EXPECT_EQ(of_chosen_rows({node("Expand", {"one", "s"}, {"e"}), node("Add", {"k", "e"}, {"y"})}),
            (Texts{"f32[3,2]{4 2 3 7 5 -1}", "f32[0,2]{}"}));
}

// As exporters write it: -1 stands for a size that stays.
TEST(OnnxDataSizes, NoSizeIsMinusOne) {
  EXPECT_EQ(
      of_chosen_rows({node("Equal", {"s", "back"}, {"stays"}), node("Where", {"stays", "v1", "s"}, {"to"}),
                      node("Expand", {"one", "to"}, {"y"})}),
      (Texts{"f32[3,2]{1 1 1 1 1 1}", "f32[0,2]{}"}));
}

TEST(OnnxDataSizes, ReshapesMoveThem) {
  EXPECT_EQ(of_chosen_rows({node("Reshape", {"k", "back"}, {"y"})}),
            (Texts{"f32[6]{3 1 2 6 4 -2}", "f32[0]{}"}));
  EXPECT_EQ(of_chosen_rows({node("Concat", {"v1", "counts", "v2"}, {"to"}, {attribute("axis", int64_t(0))}),
                            node("Reshape", {"k", "to"}, {"y"})}),
            (Texts{"f32[1,3,2]{3 1 2 6 4 -2}", "f32[1,0,2]{}"}));
}

TEST(OnnxDataSizes, ReductionsSeeOnlyWhatIsMeant) {
  EXPECT_EQ(of_chosen_rows({node("Exp", {"k"}, {"e"}), node("ReduceSum", {"e", "v0"}, {"t"}),
                            node("Greater", {"t", "zero"}, {"some"}),
                            node("Cast", {"some"}, {"y"}, {attribute("to", int64_t(1))})}),
            (Texts{"f32[1,2]{1 1}", "f32[1,2]{0 0}"}));
  EXPECT_EQ(of_chosen_rows({node("ReduceMean", {"k", "v1"}, {"y"}, {attribute("keepdims", int64_t(0))})}),
            (Texts{"f32[3]{2 4 1}", "f32[0]{}"}));
  EXPECT_EQ(of_chosen_rows({node("Neg", {"k"}, {"e"}),
                            node("Concat", {"e", "x"}, {"both"}, {attribute("axis", int64_t(0))}),
                            node("ReduceMax", {"both", "v0"}, {"y"})}),
            (Texts{"f32[1,2]{4 6}", "f32[1,2]{-1 2}"}));
  EXPECT_EQ(of_chosen_rows({node("Transpose", {"k"}, {"t"}), node("MatMul", {"t", "k"}, {"y"})}),
            (Texts{"f32[2,2]{29 7 7 41}", "f32[2,2]{0 0 0 0}"}));
}

TEST(OnnxDataSizes, SlicesCountFromTheEndOfWhatIsMeant) {
  EXPECT_EQ(of_chosen_rows({node("Slice", {"k", "back", "end", "v0"}, {"y"})}),
            (Texts{"f32[1,2]{4 -2}", "f32[0,2]{}"}));
  EXPECT_EQ(of_chosen_rows({node("Slice", {"k", "back", "front", "v0", "back"}, {"y"})}),
            (Texts{"f32[3,2]{4 -2 2 6 3 1}", "f32[0,2]{}"}));
  EXPECT_EQ(of_chosen_rows({node("Slice", {"x", "counts", "end", "v0"}, {"y"})}),
            (Texts{"f32[1,2]{4 -2}", "f32[2,2]{-1 1 -2 2}"}));
}

TEST(OnnxDataSizes, JoinedSortedAndWritten) {
  EXPECT_EQ(of_chosen_rows({node("Concat", {"k", "x"}, {"y"}, {attribute("axis", int64_t(0))})}),
            (Texts{"f32[7,2]{3 1 2 6 4 -2 3 1 -1 5 2 6 4 -2}", "f32[2,2]{-1 1 -2 2}"}));
  EXPECT_EQ(of_chosen_rows({node("Min", {"counts", "v2"}, {"few"}),
                            node("TopK", {"k", "few"}, {"y", "at"}, {attribute("axis", int64_t(0))})}),
            (Texts{"f32[2,2]{4 6 3 1}", "f32[0,2]{}"}));
  EXPECT_EQ(
      of_chosen_rows({node("Expand", {"one", "counts"}, {"ones"}), node("Unsqueeze", {"rows", "v1"}, {"at"}),
                      node("ScatterND", {"first", "at", "ones"}, {"y"})}),
      (Texts{"f32[4]{1 -1 1 1}", "f32[2]{-1 -2}"}));
}

// What is held for one number of rows may be more than for another that is the same.
TEST(OnnxDataSizes, OperandsHeldInDifferentNumbersMeet) {
  const Message twice = node("Concat", {"x", "x"}, {"long"}, {attribute("axis", int64_t(0))});
  const Message part = node("Slice", {"long", "v0", "counts", "v0"}, {"some"});
  EXPECT_EQ(of_chosen_rows({twice, part, node("Sub", {"some", "k"}, {"y"})}),
            (Texts{"f32[3,2]{0 0 -3 -1 -2 8}", "f32[0,2]{}"}));
  EXPECT_EQ(of_chosen_rows({twice, part, node("Unsqueeze", {"rows", "v1"}, {"at"}),
                            node("ScatterND", {"x", "at", "some"}, {"y"})}),
            (Texts{"f32[4,2]{3 1 -1 5 -1 5 2 6}", "f32[2,2]{-1 1 -2 2}"}));
  EXPECT_EQ(of_chosen_rows({node("Concat", {"k", "x"}, {"long"}, {attribute("axis", int64_t(0))}),
                            node("Slice", {"long", "v0", "v2", "v0"}, {"a"}),
                            node("Slice", {"k", "v0", "v2", "v0"}, {"b"}),
                            node("Concat", {"b", "b"}, {"c"}, {attribute("axis", int64_t(0))}),
                            node("Slice", {"c", "v0", "v2", "v0"}, {"d"}), node("Add", {"d", "b"}, {"y"})}),
            (Texts{"f32[2,2]{6 2 4 12}", "f32[0,2]{}"}));
}

TEST(OnnxDataSizes, ALoopRunsThatOften) {
  const Message body =
      graph({node("Gather", {"k", "i"}, {"row"}), node("Add", {"h", "row"}, {"next"}),
             node("Neg", {"row"}, {"out"}), node("Identity", {"go"}, {"on"})},
            {value("i", {}, ElementType::i64), value("go", {}, ElementType::bool_), value("h", {"2"})},
            {value("on", {}, ElementType::bool_), value("next", {"2"}), value("out", {"2"})});
  const Message start = node("Expand", {"zero", "v2"}, {"h0"});
  EXPECT_EQ(of_chosen_rows(
                {start, node("Loop", {"count", "", "h0"}, {"y", "all"}, {graph_attribute("body", body)})}),
            (Texts{"f32[2]{9 5}", "f32[2]{0 0}"}));
  EXPECT_EQ(of_chosen_rows(
                {start, node("Loop", {"count", "", "h0"}, {"last", "y"}, {graph_attribute("body", body)})}),
            (Texts{"f32[3,2]{-3 -1 -2 -6 -4 2}", "f32[0,2]{}"}));
}

// One branch doubles the rows, the other drops one.
TEST(OnnxDataSizes, BranchesOfDifferentSizes) {
  const Message twice =
      graph({node("Concat", {"x", "x"}, {"a"}, {attribute("axis", int64_t(0))})}, {}, {value("a", {})});
  const Message less = graph({node("Slice", {"x", "one", "end", "zero"}, {"b"})}, {}, {value("b", {})});
  const Message g =
      graph({node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch", twice), graph_attribute("else_branch", less)})},
            {value("x", {"n", "1"}), value("c", {}, ElementType::bool_)}, {value("y", {})},
            {ints("one", {1}, {1}), ints("end", {1}, {kEnd}), ints("zero", {1}, {0})});
  const onnx::Imported m = imported(g);
  const Literal x = Literal::of<float>({2, 1}, {5, 7});
  const auto run = [&](bool c) {
    return meant(m, m.program.interpret({{"x", x}, {"c", Literal::scalar(DType::bool_, c)}}));
  };
  EXPECT_EQ(run(true), "f32[4,1]{5 7 5 7}");
  EXPECT_EQ(run(false), "f32[1,1]{7}");
}

TEST(OnnxDataSizes, BranchesMayChooseRows) {
  const Message some =
      graph({node("Neg", {"k"}, {"a"}), node("Slice", {"a", "v0", "v2", "v0"}, {"b"})}, {}, {value("b", {})});
  const Message all = graph({node("Abs", {"x"}, {"c"})}, {}, {value("c", {})});
  EXPECT_EQ(
      of_chosen_rows({node("Greater", {"count", "i1"}, {"many"}),
                      node("If", {"many"}, {"y"},
                           {graph_attribute("then_branch", some), graph_attribute("else_branch", all)})}),
      (Texts{"f32[2,2]{-3 -1 -2 -6}", "f32[2,2]{1 1 2 2}"}));
}

TEST(OnnxDataSizes, ThoseOfConstantsAreKnown) {
  const Message g =
      graph({node("NonZero", {"mask"}, {"at"}), node("Reshape", {"at", "flat"}, {"rows"}),
             node("Gather", {"x", "rows"}, {"y"})},
            {value("x", {"3"})}, {value("y", {})}, {floats("mask", {3}, {1, 0, 1}), ints("flat", {1}, {-1})});
  const onnx::Imported m = imported(g);
  EXPECT_TRUE(m.bounded.empty());
  EXPECT_EQ(m.program.interpret({{"x", Literal::of<float>({3}, {4, 5, 6})}}).at("y").to_reals(),
            (Reals{4, 6}));
}

// A box of 4 by 2 pixels has 4 places in each of 2 cells, one of 1 by 1 a single place.
TEST(OnnxDataSizes, PlacesInABoxByItsSize) {
  const Message g = graph(
      {node("RoiAlign", {"x", "boxes", "maps"}, {"y"},
            {attribute("output_height", int64_t(2)), attribute("output_width", int64_t(1)),
             attribute("coordinate_transformation_mode", std::string("output_half_pixel"))})},
      {value("x", {"1", "1", "h", "w"}), value("boxes", {"m", "4"}), value("maps", {"m"}, ElementType::i64)},
      {value("y", {})});
  const onnx::Imported m = imported(g);
  std::vector<float> pixels;
  for (int i = 0; i < 30; ++i) pixels.push_back(float(i));  // 5 rows of 6: linear, so that means are middles
  const Literal y = m.program
                        .interpret({{"x", Literal::of<float>({1, 1, 5, 6}, pixels)},
                                    {"boxes", Literal::of<float>({2, 4}, {1, 0, 3, 4, 2, 1, 3, 2})},
                                    {"maps", Literal::of<int64_t>({2}, {0, 0})}})
                        .at("y");
  EXPECT_EQ(cat(y.shape()), "f32[2,1,2,1]");
  EXPECT_EQ(y.to_reals(), (Reals{8, 20, 10, 13}));
}

}  // namespace
}  // namespace rlx
