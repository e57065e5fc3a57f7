// Graphs made from the samples of operators: one node, its operands as inputs.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/sample.h"

namespace rlx::test {

struct SampleCase {
  ir::Graph graph;
  Literals leaves;  // values for graph.leaves()
};

/// The graph of sample `index` of an operator. With `floats`, real floats take that dtype.
inline SampleCase make_case(const ir::OpDef& op, size_t index, std::optional<DType> floats = std::nullopt) {
  const ir::Sample sample = op.samples()[index];
  SampleCase out{ir::Graph(std::string(op.name)), {}};
  ir::Values operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    out.leaves.push_back(ir::sample_literal(sample.inputs[i], 1000 * index + i, floats));
    operands.push_back(out.graph.input(cat("x", i), out.leaves.back().shape()));
  }
  const ir::NodeId id = out.graph.append(op, sample.attrs, operands);
  ir::Values outputs;
  for (uint32_t r = 0; r < out.graph.node(id).shapes.size(); ++r) outputs.push_back(out.graph.value(id, r));
  out.graph.set_outputs(outputs);
  return out;
}

inline std::vector<const ir::OpDef*> ops_of(const ir::OpTable& table) {
  std::vector<const ir::OpDef*> out;
  for (const auto& [name, def] : table.all()) out.push_back(def);
  return out;
}

struct OpName {
  template <class T>
  std::string operator()(const T& info) const {
    return std::string(info.param->name);
  }
};

}  // namespace rlx::test
