// The samples of operators as programs to export.
#pragma once

#include <optional>
#include <string>

#include "rlx/ir/leaves.h"
#include "rlx/lang/program.h"
#include "tests/support/samples.h"

namespace rlx::test {

struct SampleProgram {
  Program program;
  NamedLiterals inputs;
  Literals want;
};

/// Nothing for samples of complex numbers, which ONNX has no operators for. Packed weights are weights.
inline std::optional<SampleProgram> sample_program(const ir::OpDef& op, size_t index) {
  const SampleCase c = make_case(op, index);
  for (const ir::Node* n : c.graph.nodes()) {
    for (const Shape& s : n->shapes) {
      if (is_complex(s.dtype())) return std::nullopt;
    }
  }
  SampleProgram out;
  const bool packs =
      op.name.starts_with("dequant") && !op.name.starts_with("dequantize_per") && op.name != "dequantize";
  ir::Graph g(c.graph.name());
  ir::Values operands;
  const auto leaves = c.graph.leaves();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string& name = ir::leaf_name(c.graph.node(leaves[i]));
    const Literal& value = c.leaves[i];
    const bool weight = packs && value.dtype() == DType::u8;
    operands.push_back(weight ? g.param(name, value.shape()) : g.input(name, value.shape()));
    (weight ? out.program.weights : out.inputs).emplace(name, value);
  }
  const ir::Node& node = *c.graph.nodes().back();
  const ir::NodeId id = g.append(op, node.attrs, operands);
  ir::Values results;
  for (uint32_t r = 0; r < node.shapes.size(); ++r) results.push_back(g.value(id, r));
  g.set_outputs(results);
  out.want = ir::interpret(c.graph, c.leaves);
  out.program.graph = Graph(std::move(g));
  return out;
}

}  // namespace rlx::test
