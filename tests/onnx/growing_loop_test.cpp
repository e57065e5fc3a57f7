// Loops whose values grow: they run while the graph is built, for the contents of the inputs that decide their end.
#include <gtest/gtest.h>

#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "tests/onnx/model_bytes.h"

namespace rlx {
namespace {

using namespace test;

// v becomes (v, twice its last) as long as that was below 20; what doubles is a weight.
std::string growing() {
  const Message body =
      graph({node("Slice", {"v", "back", "end"}, {"last"}), node("MatMul", {"last", "column"}, {"row"}),
             node("Slice", {"row", "one", "two"}, {"more"}),
             node("Concat", {"v", "more"}, {"longer"}, {attribute("axis", int64_t(0))}),
             node("Less", {"last", "limit"}, {"below"}), node("Squeeze", {"below"}, {"on"})},
            {value("i", {}, ElementType::i64), value("go", {}, ElementType::bool_), value("v", {})},
            {value("on", {}, ElementType::bool_), value("longer", {})},
            {ints("back", {1}, {-1}), ints("end", {1}, {int64_t(1) << 62}), ints("one", {1}, {1}),
             ints("two", {1}, {2}), floats("column", {1, 9}, {0, 2, 0, 0, 0, 0, 0, 0, 0}),
             floats("limit", {}, {20})});
  return model(graph({node("Loop", {"most", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                     {value("x", {"n"})}, {value("y", {})}, {ints("most", {}, {INT64_MAX})}));
}

onnx::Imported imported(const NamedLiterals& values) {
  const auto owner = std::make_shared<std::string>(growing());
  return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"),
                            {.values = values});
}

TEST(OnnxGrowingLoop, RunsForTheValuesGiven) {
  for (const auto& [x, want] :
       {std::pair<std::vector<float>, std::vector<float>>{{1, 9}, {1, 9, 18, 36, 72}}, {{30}, {30, 60}}}) {
    const NamedLiterals values{{"x", Literal::of<float>({int64_t(x.size())}, x)}};
    const onnx::Imported m = imported(values);
    EXPECT_EQ(m.fixed, std::vector<std::string>{"x"});
    EXPECT_EQ(m.program.interpret({}).at("y"), Literal::of<float>({int64_t(want.size())}, want));
  }
}

TEST(OnnxGrowingLoop, AsksForTheValues) {
  try {
    imported({});
    FAIL() << "no value was needed";
  } catch (const onnx::NeedsValue& e) {
    EXPECT_EQ(e.inputs(), std::set<std::string>{"x"});
    EXPECT_NE(e.message().find("whether the loop goes on depends on the contents of input 'x'"),
              std::string::npos)
        << e.message();
  }
}

}  // namespace
}  // namespace rlx
