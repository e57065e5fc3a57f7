#include "rlx/passes/remark.h"

#include "rlx/ir/leaves.h"

namespace rlx::passes {
namespace {

std::string expression(const ir::Graph& g, const ir::Node& n, int depth) {
  const std::string& name = n.op->traits.leaf ? ir::leaf_name(n) : n.name;
  if (!name.empty()) return name;
  if (depth == 0) return "..";
  if (n.inputs.empty()) return std::string(n.op->name);
  std::vector<std::string> operands;
  for (const ir::Value v : n.inputs) operands.push_back(expression(g, g.node(v), depth - 1));
  return cat(n.op->name, "(", join(operands), ")");
}

}  // namespace

std::string label_for_remark(const ir::Graph& g, const ir::Node& n) {
  constexpr int kDepth = 2;  // deeper ones are longer than what is said of them
  return expression(g, n, kDepth);
}

}  // namespace rlx::passes
