// The gradients of an operator's samples as graphs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/leaves.h"
#include "rlx/transform/transform.h"
#include "tests/support/samples.h"

namespace rlx::test {

/// A graph that gives the gradients of all outputs in all leaves, and values for its leaves; none where there
/// are none.
inline std::optional<SampleCase> gradient_case(const SampleCase& c) {
  std::vector<std::string> wrt;
  for (const ir::NodeId id : c.graph.leaves()) {
    const ir::Node& n = c.graph.node(id);
    if (is_differentiable(n.shapes[0].dtype()))
      wrt.push_back(static_cast<const ir::NamedLeaf*>(n.attrs.get())->name);
  }
  bool any = false;
  for (const ir::Value v : c.graph.outputs()) any = any || is_differentiable(c.graph.shape(v).dtype());
  if (wrt.empty() || !any || c.graph.has_dynamic_dims()) return std::nullopt;
  SampleCase out{transform::grad(c.graph, wrt, {.cotangent_inputs = true}), c.leaves};
  const auto leaves = out.graph.leaves();
  for (size_t i = c.leaves.size(); i < leaves.size(); ++i)
    out.leaves.push_back(ir::sample_literal(cat(out.graph.node(leaves[i]).shapes[0]), 500 + i));
  return out;
}

}  // namespace rlx::test
