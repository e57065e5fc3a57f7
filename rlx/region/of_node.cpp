#include "rlx/region/of_node.h"

#include "rlx/ops/control/fused.h"

namespace rlx::region {
namespace {

// The node alone, as a body.
ir::Graph body_of(const ir::Node& node, std::span<const Shape> types) {
  ir::Graph body(std::string(node.op->name));
  ir::Values operands;
  for (const Shape& s : types) operands.push_back(body.input(cat("x", operands.size()), s));
  const ir::NodeId id = body.append(*node.op, node.attrs, operands);
  ir::Values outputs;
  for (uint32_t i = 0; i < node.shapes.size(); ++i) outputs.push_back(body.value(id, i));
  body.set_outputs(outputs);
  return body;
}

}  // namespace

Built of_node(const ir::Node& node, std::span<const Shape> types, std::span<const Layout> operands,
              std::span<const Layout> results) {
  if (node.is<ops::Fused>()) return from_graph(*node.as<ops::Fused>().body, operands, results);
  return from_graph(body_of(node, types), operands, results);
}

}  // namespace rlx::region
