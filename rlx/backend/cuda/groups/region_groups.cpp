#include <map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLarge = 1 << 20;  // elements whose second reading is worth avoiding

/// The axes that a node sums a large operand over, when sums are all that it makes.
const std::vector<int>* axes_of(const ir::Graph& g, const ir::Node& n) {
  const bool fused = n.is<ops::Fused>();
  if (!fused && !n.is<ops::Reduce>()) return nullptr;
  if (n.inputs.empty() || g.shape(n.inputs[0]).elements() < kLarge) return nullptr;
  for (const Shape& s : n.shapes) {
    if (s.elements() * 2 > g.shape(n.inputs[0]).elements()) return nullptr;
  }
  if (!fused) return &n.as<ops::Reduce>().axes;
  const std::vector<int>* axes = nullptr;
  for (const ir::Node* inner : n.as<ops::Fused>().body->nodes()) {
    if (!inner->is<ops::Reduce>()) continue;
    if (axes && *axes != inner->as<ops::Reduce>().axes) return nullptr;
    axes = &inner->as<ops::Reduce>().axes;
  }
  return axes;
}

}  // namespace

std::vector<Group> region_groups(const ir::Graph& g) {
  std::map<std::tuple<ir::NodeId, uint32_t, std::vector<int>>, Group> alike;
  for (const ir::Node* n : g.nodes()) {
    const std::vector<int>* const axes = axes_of(g, *n);
    if (!axes) continue;
    Group& group = alike[{n->inputs[0].node, n->inputs[0].index, *axes}];
    group.kind = kRegionGroup;
    group.nodes.push_back(n);
  }
  std::vector<Group> out;
  for (auto& [key, group] : alike) {
    if (group.nodes.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace rlx::cuda
