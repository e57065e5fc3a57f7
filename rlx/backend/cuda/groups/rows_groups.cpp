#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/shape/dynamic_slice.h"

namespace rlx::cuda {
namespace {

// What a value is a view of.
const ir::Node& behind_views(const ir::Graph& g, ir::Value v) {
  const ir::Node* n = &g.node(v);
  while (n->op->view != nullptr && n->shapes.size() == 1 && !n->inputs.empty()) n = &g.node(n->inputs[0]);
  return *n;
}

}  // namespace

// The queries of an attention, and the caches that it reads.
std::vector<Group> rows_groups(const ir::Graph& g) {
  std::vector<Group> out;
  for (const ir::Node* n : g.nodes()) {
    if (!n->is<ops::Attention>()) continue;
    Group group{kRowsGroup, {}};
    const auto add = [&](const ir::Node& member) {
      for (const ir::Node* known : group.nodes) {
        if (known == &member) return;
      }
      group.nodes.push_back(&member);
    };
    if (const ir::Node& q = g.node(n->inputs[0]); q.is<ops::Rope>()) add(q);
    for (size_t i = 1; i < 3; ++i) {
      const ir::Node& cache = behind_views(g, n->inputs[i]);
      if (!cache.is<ops::DynamicUpdateSlice>()) continue;
      add(cache);
      const ir::Node& rows = g.node(cache.inputs[1]);
      if (rows.is<ops::Rope>() && rows.uses.size() == 1) add(rows);
    }
    if (group.nodes.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace rlx::cuda
