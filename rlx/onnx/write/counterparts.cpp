// Operators without a counterpart are expanded: by their decomposition, or by a lowering made for this.
#include "rlx/onnx/write/lower.h"
#include "rlx/onnx/write/writer.h"
#include "rlx/transform/walk.h"

namespace rlx::onnx {
namespace {

Tensors lowered(ir::Graph& g, const ir::Node& n, LowerNode lower) {
  Tensors operands;
  for (const ir::Value v : n.inputs) operands.emplace_back(ir::Expr{&g, v});
  return lower(n, operands);
}

// The nodes that compute what node `id` does; nothing when it stays.
std::optional<ir::Values> expanded(ir::Graph& g, ir::NodeId id, bool all) {
  const ir::Node& n = g.node(id);
  if (n.op->traits.leaf || find_writer(n.op->name) != nullptr) return std::nullopt;
  if (!all && is_function(n.op->name)) return std::nullopt;
  const LowerNode lower = find_lowering(n.op->name);
  if (lower == nullptr && !n.op->is_composite()) return std::nullopt;
  const transform::RuleScope scope(g, n, "export");
  ir::Values out;
  if (lower != nullptr) {
    const ir::Node copy = n;  // nodes move while others are made
    for (const Tensor& t : lowered(g, copy, lower)) out.push_back(t);
  } else {
    for (const ir::Expr& e : transform::emit_decomposition(g, n)) out.push_back(e);
  }
  return out;
}

}  // namespace

LowerNode find_lowering(std::string_view op) {
  for (const auto* theme : {&sequence_lowerings(), &matrix_lowerings()}) {
    if (const auto at = theme->find(op); at != theme->end()) return at->second;
  }
  return nullptr;
}

ir::Graph with_counterparts(const ir::Graph& original, bool all) {
  ir::Graph g = original;
  const std::vector<std::string> names = g.output_names();
  std::vector<ir::NodeId> work = g.reverse_topo();
  while (!work.empty()) {
    const ir::NodeId id = work.back();
    work.pop_back();
    const ir::NodeId first = g.next_id();
    const auto results = expanded(g, id, all);
    if (!results) continue;
    for (uint32_t i = 0; i < results->size(); ++i) g.replace(g.value(id, i), (*results)[i]);
    g.erase(id);
    for (ir::NodeId made = g.next_id(); made-- > first;) {
      if (g.contains(made)) work.push_back(made);
    }
  }
  if (g.output_names() != names) g.set_outputs(g.outputs(), names);
  g.erase_dead();
  return g;
}

}  // namespace rlx::onnx
