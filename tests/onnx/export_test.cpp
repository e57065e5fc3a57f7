// Graphs written as ONNX and read again give the same numbers.
#include "rlx/onnx/export.h"

#include <gtest/gtest.h>

#include "rlx/io/onnx/read.h"
#include "rlx/lang/trace.h"
#include "rlx/onnx/import.h"
#include "rlx/ops/table.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

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

// Every sample of every operator: exported, imported, equal. What has no counterpart says so and is counted.
TEST(OnnxExport, SamplesOfOperatorsComeBackEqual) {
  int operators = 0, without = 0;
  std::string missing;
  for (const auto& [name, op] : ops::table().all()) {
    if (op->traits.leaf || op->samples == nullptr || op->samples().empty()) continue;
    ++operators;
    std::string refusal;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      const test::SampleCase c = test::make_case(*op, i);
      std::optional<onnx::Imported> m;
      try {
        m = round_trip({c.graph, {}});
      } catch (const Error& e) {
        EXPECT_NE(e.kind(), ErrorKind::internal) << name << ": " << e.what();
        refusal = e.what();
        continue;
      }
      NamedLiterals values;
      const auto leaves = c.graph.leaves();
      for (size_t k = 0; k < leaves.size(); ++k)
        values.emplace(ir::leaf_name(c.graph.node(leaves[k])), c.leaves[k]);
      NamedLiterals given;
      for (const ir::NodeId id : m->program.graph.inputs()) {
        const std::string& leaf = ir::leaf_name(m->program.graph.node(id));
        given.emplace(leaf, values.at(leaf));
      }
      const Literals want = ir::interpret(c.graph, c.leaves);
      const NamedLiterals got = m->program.interpret(given);
      for (size_t k = 0; k < want.size(); ++k) {
        SCOPED_TRACE(cat(name, " sample ", i, " result ", k));
        const bool coarse = want[k].dtype() == DType::f16 || want[k].dtype() == DType::bf16;
        test::expect_close(Literals{got.at(c.graph.output_name(k))}, Literals{want[k]}, coarse ? 2e-2 : 2e-5);
      }
    }
    if (!refusal.empty()) {
      ++without;
      missing += cat(name, ": ", refusal, "\n");
    }
  }
  EXPECT_LE(without, operators * 3 / 10) << without << " of " << operators << ":\n" << missing;
}

}  // namespace
}  // namespace rlx
