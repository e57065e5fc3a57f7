#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/shape/dynamic_slice.h"

namespace rlx::cuda {
namespace {

// What a value is a view of.
const ir::Node& behind_views(const ir::Graph& g, ir::Value v) {
  const ir::Node* n = &g.node(v);
  while (n->op->view != nullptr && n->shapes.size() == 1 && !n->inputs.empty()) n = &g.node(n->inputs[0]);
  return *n;
}

bool holds(const Group& group, ir::NodeId id) {
  return std::any_of(group.nodes.begin(), group.nodes.end(), [&](const ir::Node* n) { return n->id == id; });
}

// The group with the one product whose columns it moves and the views between them, where nobody else reads these.
std::optional<Group> with_product(const ir::Graph& g, const Group& rows) {
  Group out{kTurnedGroup, rows.nodes};
  const ir::Node* product = nullptr;
  const auto add = [&](const ir::Node* n) {
    if (!holds(out, n->id)) out.nodes.push_back(n);
  };
  for (const ir::Node* n : rows.nodes) {
    const ir::Value moved = n->is<ops::Rope>() ? n->inputs[0] : n->inputs[1];
    if (holds(rows, moved.node)) continue;
    const ir::Node& maker = behind_views(g, moved);
    if (!maker.is<ops::Matmul>() || (product && product != &maker)) return std::nullopt;
    product = &maker;
    for (const ir::Node* view = &g.node(moved); view != product; view = &g.node(view->inputs[0])) add(view);
  }
  if (!product) return std::nullopt;
  add(product);
  for (const ir::Node* n : out.nodes) {
    if (holds(rows, n->id)) continue;
    for (const ir::Use& u : n->uses) {
      if (u.user == ir::kNoNode || !holds(out, u.user)) return std::nullopt;
    }
  }
  return out;
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
    if (group.nodes.size() < 2) continue;
    if (auto turned = with_product(g, group)) out.push_back(std::move(*turned));
    out.push_back(std::move(group));
  }
  return out;
}

}  // namespace rlx::cuda
