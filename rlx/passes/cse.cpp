#include "rlx/passes/cse.h"

#include <unordered_map>

#include "rlx/ir/compare.h"

namespace rlx::passes {

// A candidate is looked up by hash and then compared with the node in the new graph, so that one table serves a graph and its
// bodies.
ir::Rewritten cse(const ir::Graph& graph) {
  std::unordered_multimap<uint64_t, ir::NodeId> seen;
  return ir::rewrite(graph, [&](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    if (n.op->traits.leaf || !n.op->traits.pure) return std::nullopt;
    ir::Graph& to = copy.to();
    const ir::Values operands = copy.at(n.inputs);
    Hasher h;
    ir::add_operation(h, n);
    for (const ir::Value v : operands) h.add(uint64_t(v.node) << 16 | v.index);
    h.add(to.tag());
    const uint64_t key = h.finish().lo;
    for (auto [it, end] = seen.equal_range(key); it != end; ++it) {
      if (!to.contains(it->second)) continue;
      const ir::Node& other = to.node(it->second);
      if (!ir::same_operation(other, n) || other.inputs != operands) continue;
      ir::Values results;
      for (uint32_t i = 0; i < other.shapes.size(); ++i) results.push_back(to.value(other.id, i));
      return results;
    }
    seen.emplace(key, to.next_id());
    return std::nullopt;
  });
}

}  // namespace rlx::passes
