// Single nodes of com.microsoft against what ONNX Runtime computes (contrib_cases.py wrote the cases).
#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/onnx/model_bytes.h"
#include "tests/support/compare.h"

namespace rlx {
namespace {

using namespace test;

Literal literal_of(const JsonView& v) {
  const std::string type(v.at(0).string());
  Dims dims;
  for (const JsonView d : v.at(1).items()) dims.emplace_back(d.integer());
  std::vector<double> values;
  for (const JsonView x : v.at(2).items()) values.push_back(x.real());
  return Literal::reals(Shape(*dtype_from_name(type), dims), values);
}

Message tensor_message(const std::string& name, const Literal& l) {
  Message m;
  for (const Dim d : l.shape().dims()) m.number(1, d.value());
  const std::span<const std::byte> bytes = l.bytes();
  return m.number(2, int64_t(io::onnx::element_of(l.dtype())))
      .text(8, name)
      .text(9, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Message attribute_message(const std::string& name, const JsonView& v) {
  if (v.kind() == JsonKind::integer) return attribute(name, v.integer());
  if (v.kind() == JsonKind::real) return attribute(name, float(v.real()));
  if (v.kind() == JsonKind::string) return attribute(name, std::string(v.string()));
  if (v.size() > 0 && v.at(0).kind() == JsonKind::real) {
    std::vector<float> numbers;
    for (const JsonView x : v.items()) numbers.push_back(float(x.real()));
    return attribute(name, numbers);
  }
  std::vector<int64_t> numbers;
  for (const JsonView x : v.items()) numbers.push_back(x.integer());
  return attribute(name, numbers);
}

// One node as a model, and the values of its inputs.
struct NodeCase {
  std::string bytes;
  NamedLiterals inputs, results;
};

NodeCase read_case(const JsonView& c) {
  NodeCase out;
  std::set<int64_t> constant;
  for (const JsonView i : c.at("constant").items()) constant.insert(i.integer());
  std::vector<std::string> in, made;
  std::vector<Message> inputs, outputs, initializers, attributes;
  int64_t k = 0;
  for (const JsonView v : c.at("operands").items()) {
    const std::string name = cat("x", k);
    in.push_back(v.kind() == JsonKind::null ? "" : name);
    if (v.kind() != JsonKind::null) {
      const Literal l = literal_of(v);
      std::vector<std::string> dims;
      for (const Dim d : l.shape().dims()) dims.push_back(cat(d));
      if (constant.contains(k)) {
        initializers.push_back(tensor_message(name, l));
      } else {
        inputs.push_back(value(name, dims, io::onnx::element_of(l.dtype())));
        out.inputs.emplace(name, l);
      }
    }
    ++k;
  }
  for (size_t i = 0; i < c.at("outputs").size(); ++i) {
    const auto at = size_t(c.at("outputs").at(i).integer());
    made.resize(at + 1);
    made[at] = cat("y", at);
    outputs.push_back(value(made[at], {}));
    out.results.emplace(made[at], literal_of(c.at("results").at(i)));
  }
  for (const auto& [name, v] : c.at("attributes").members())
    attributes.push_back(attribute_message(std::string(name), v));
  const Message n = node(std::string(c.at("op").string()), in, made, attributes, "com.microsoft");
  out.bytes = model(graph({n}, inputs, outputs, initializers), 17);
  return out;
}

TEST(OnnxContrib, NodesGiveWhatOnnxRuntimeGives) {
  const std::string path = "tests/onnx/contrib_cases.json";
  const Json all = Json::parse(read_file(path), path);
  for (const JsonView c : all.items()) {
    SCOPED_TRACE(std::string(c.at("name").string()));
    const NodeCase n = read_case(c);
    const auto owner = std::make_shared<std::string>(n.bytes);
    try {
      const onnx::Imported m =
          onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"));
      for (const char* device : {"ref", "cpu"}) {
        SCOPED_TRACE(device);
        NamedLiterals given;
        for (const ir::NodeId id : m.program.graph.inputs()) {
          const std::string& leaf = ir::leaf_name(m.program.graph.node(id));
          given.emplace(leaf, n.inputs.at(leaf));
        }
        auto compiled = compile(m.program.graph, m.program.weights, {.device = device});
        const NamedLiterals got = compiled.run(given);
        for (const auto& [name, want] : n.results) expect_close(got.at(name), want, c.at("tolerance").real());
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

// As exporters write it: batch, steps and lengths are symbols, and the total length is the extent of a mask.
TEST(OnnxContrib, GroupedQueriesWithOpenSizes) {
  const std::string path = "tests/onnx/contrib_cases.json";
  const Json all = Json::parse(read_file(path), path);
  int tried = 0;
  for (const JsonView c : all.items()) {
    const std::string name(c.at("name").string());
    if (name != "gqa_step" && name != "gqa_step_rows" && name != "gqa_steps") continue;
    SCOPED_TRACE(name);
    ++tried;
    const NodeCase n = read_case(c);
    std::vector<Message> attributes, outputs;
    for (const auto& [key, v] : c.at("attributes").members())
      attributes.push_back(attribute_message(std::string(key), v));
    for (const auto& [key, v] : n.results) outputs.push_back(value(key, {}));
    const Message g =
        graph({node("Shape", {"mask"}, {"sizes"}), node("Gather", {"sizes", "one"}, {"total"}),
               node("Cast", {"total"}, {"x6"}, {attribute("to", int64_t(ElementType::i32))}),
               node("GroupQueryAttention", {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8"},
                    {"y0", "y1", "y2"}, attributes, "com.microsoft")},
              {value("x0", {"b", "s", "32"}), value("x1", {"b", "s", "16"}), value("x2", {"b", "s", "16"}),
               value("x3", {"b", "1", "p", "16"}), value("x4", {"b", "1", "p", "16"}),
               value("x5", {"b"}, ElementType::i32), value("mask", {"b", "t"}, ElementType::i64),
               value("x7", {"8", "8"}), value("x8", {"8", "8"})},
              outputs, {ints("one", {}, {1})});
    const auto owner = std::make_shared<std::string>(model(g, 17));
    const onnx::Imported m =
        onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "m.onnx"));
    NamedLiterals given = n.inputs;
    const int64_t batch = given.at("x0").shape().dim(0).value();
    const int64_t total = literal_of(c.at("operands").at(6)).integer_at(0);
    given.emplace("mask", Literal::zeros(Shape(DType::i64, {batch, total})));
    const NamedLiterals got = m.program.interpret(given);
    for (const auto& [key, want] : n.results) expect_close(got.at(key), want, 2e-5);
  }
  EXPECT_EQ(tried, 3);
}

}  // namespace
}  // namespace rlx
