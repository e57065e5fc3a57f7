#include "rlx/backend/cuda/groups/groups.h"

#include "rlx/ops/control/fused.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::cuda {

bool reduces(const ir::Node& fused) {
  for (const ir::Node* n : fused.as<ops::Fused>().body->nodes()) {
    if (n->is<ops::Reduce>()) return true;
  }
  return false;
}

std::optional<ir::Graph> with_groups(const ir::Graph& given, const ir::Target& target) {
  std::optional<ir::Graph> changed;
  for (const auto change : {with_sums_behind_loops, with_joined_sides, with_recomputation}) {
    if (auto next = change(changed ? *changed : given, target)) changed = std::move(next);
  }
  const ir::Graph& g = changed ? *changed : given;
  std::vector<Group> groups;
  for (const auto find : {product_groups, rows_groups, loss_groups, region_groups}) {
    for (Group& group : find(g)) groups.push_back(std::move(group));
  }
  std::optional<ir::Graph> joined = backend::with_groups(g, target, groups);
  return joined ? std::move(joined) : std::move(changed);
}

}  // namespace rlx::cuda
