// Graphs written as ONNX and read again give the same numbers.
#include "rlx/onnx/export.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/io/onnx/read.h"
#include "rlx/lang/trace.h"
#include "rlx/onnx/import.h"
#include "rlx/ops/table.h"
#include "tests/onnx/sample_program.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using namespace test;

onnx::Imported round_trip(const Program& p) {
  const auto bytes = std::make_shared<std::string>(onnx::export_model(p));
  return onnx::import_model(io::onnx::parse_model(std::as_bytes(std::span(*bytes)), bytes, "m.onnx"));
}

TEST(OnnxExport, SymbolsStaySymbols) {
  const Graph g = trace("g", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), Dim::seq(), 6});
    return x.reshape({Dim::batch() * Dim::seq(), 6}).softmax();
  });
  const onnx::Imported m = round_trip({g, {}});
  EXPECT_EQ(cat(m.program.graph.shape(m.program.graph.outputs()[0])), "f32[batch*seq,6]");
}

TEST(OnnxExport, AMissingWeightIsAnError) {
  const Graph g = trace("g", [](Tracer& t) { return t.input("x", {2, 3}).matmul(t.param("w", {3, 4})); });
  EXPECT_EQ(test::message_of([&] { onnx::export_model({g, {}}); }),
            "onnx: weight 'w' has no value; 1 are missing");
}

// Why a sample cannot be written, or nothing: then it came back with equal results.
std::string refusal_of(const SampleProgram& c, std::string_view name) {
  std::optional<onnx::Imported> m;
  try {
    m = round_trip(c.program);
  } catch (const Error& e) {
    EXPECT_NE(e.kind(), ErrorKind::internal) << name << ": " << e.what();
    return e.what();
  }
  NamedLiterals given;
  for (const ir::NodeId id : m->program.graph.inputs()) {
    const std::string& leaf = ir::leaf_name(m->program.graph.node(id));
    given.emplace(leaf, c.inputs.at(leaf));
  }
  const NamedLiterals got = m->program.interpret(given);
  for (size_t k = 0; k < c.want.size(); ++k) {
    SCOPED_TRACE(cat("result ", k));
    const bool coarse = c.want[k].dtype() == DType::f16 || c.want[k].dtype() == DType::bf16;
    expect_close(Literals{got.at(c.program.graph.output_name(k))}, Literals{c.want[k]}, coarse ? 2e-2 : 5e-5);
  }
  return "";
}

// Every sample of every operator: exported, imported, equal. What has no counterpart says so and is counted.
TEST(OnnxExport, SamplesOfOperatorsComeBackEqual) {
  int operators = 0, without = 0;
  std::string missing;
  for (const auto& [name, op] : ops::table().all()) {
    if (op->traits.leaf || op->samples == nullptr || op->samples().empty()) continue;
    ++operators;
    std::string refusal;
    size_t written = 0;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      SCOPED_TRACE(cat(name, " sample ", i));
      const auto c = sample_program(*op, i);
      if (!c) continue;
      const std::string why = refusal_of(*c, name);
      if (!why.empty()) refusal = why;
      ++written;
    }
    if (!refusal.empty() || written == 0) {
      ++without;
      missing += cat(name, ": ", written == 0 ? "complex numbers" : refusal, "\n");
    }
  }
  EXPECT_LE(without, operators / 10) << without << " of " << operators << ":\n" << missing;
}

TEST(OnnxExport, LargeWeightsGoToASecondFile) {
  const Graph g = trace("g", [](Tracer& t) { return t.input("x", {2, 64}).matmul(t.param("w", {64, 64})); });
  const Literal w = Literal::full(Shape(DType::f32, {64, 64}), 0.5);
  const Scratch folder;
  const std::string path = folder.path("m.onnx");
  onnx::export_file(path, {g, {{"w", w}}}, {.external_above = 1000});
  EXPECT_LT(std::filesystem::file_size(path), 1000u);
  EXPECT_EQ(std::filesystem::file_size(path + ".data"), 64u * 64 * 4);
  const onnx::Imported m = onnx::import_model(path);
  EXPECT_EQ(m.program.weights.at("w").to_reals(), w.to_reals());
}

// y = norm(norm(x)): one function, called twice.
TEST(OnnxExport, CompositesThatPeopleKnowAreFunctions) {
  const Graph g = trace("g", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), 6}), gamma = t.param("gamma", {6});
    return x.rms_norm(gamma).rms_norm(gamma);
  });
  const Program p{g, {{"gamma", Literal::of<float>({6}, {1, 2, 3, 4, 5, 6})}}};
  const auto bytes = std::make_shared<std::string>(onnx::export_model(p));
  const io::onnx::Model m = io::onnx::parse_model(std::as_bytes(std::span(*bytes)), bytes, "m.onnx");
  ASSERT_EQ(m.functions.size(), 1u);
  EXPECT_EQ(m.functions[0].name, "rms_norm");
  ASSERT_EQ(m.graph.nodes.size(), 3u);  // and the name of the output
  EXPECT_EQ(m.graph.nodes[1].domain, "rlx");
  const Literal x = Literal::of<float>({1, 6}, {1, -2, 3, 0.5, 1, 2});
  expect_close(onnx::import_model(m).program.interpret({{"x", x}}).at(g.output_name(0)),
               p.interpret({{"x", x}}).at(g.output_name(0)), 1e-6);
}

}  // namespace
}  // namespace rlx
