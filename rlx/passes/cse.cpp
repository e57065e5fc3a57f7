#include "rlx/passes/cse.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/ir/compare.h"
#include "rlx/passes/canonicalise.h"
#include "rlx/passes/edit.h"

namespace rlx::passes {
namespace {

// In one order where the order does not matter.
ir::Values sorted_operands(const ir::Node& n) {
  ir::Values out = n.inputs;
  const auto place = [](ir::Value v) { return std::pair(v.node, v.index); };
  if (may_exchange(n)) std::ranges::sort(out, {}, place);
  return out;
}

}  // namespace

// A candidate is looked up by hash and then compared with the node that is there, so that one table serves a graph and its
// bodies.
ir::Rewritten cse(ir::Graph graph) {
  std::unordered_multimap<uint64_t, ir::NodeId> seen;
  seen.reserve(graph.len());
  return edit(std::move(graph), [&](ir::Graph& g, const ir::Node& n) -> std::optional<ir::Values> {
    if (!n.op->traits.pure) return std::nullopt;
    Hasher h;
    ir::add_operation(h, n);
    const ir::Values operands = sorted_operands(n);
    for (const ir::Value v : operands) h.add(uint64_t(v.node) << 16 | v.index);
    h.add(g.tag());
    const uint64_t key = h.finish().lo;
    for (auto [it, end] = seen.equal_range(key); it != end; ++it) {
      if (!g.contains(it->second)) continue;
      const ir::Node& other = g.node(it->second);
      if (other.id == n.id || !ir::same_operation(other, n) || sorted_operands(other) != operands) continue;
      ir::Values results;
      for (uint32_t i = 0; i < other.shapes.size(); ++i) results.push_back(g.value(other.id, i));
      return results;
    }
    seen.emplace(key, n.id);
    return std::nullopt;
  });
}

}  // namespace rlx::passes
