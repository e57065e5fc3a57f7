#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/dequant_matmul.h"
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

// The products whose columns a group moves, with the views between them, where nobody else reads these.
std::optional<MovedProducts> products_of(const ir::Graph& g, const Group& rows) {
  MovedProducts out;
  Group all{kTurnedGroup, rows.nodes};
  const auto add = [&](const ir::Node* n, std::vector<const ir::Node*>& to) {
    if (holds(all, n->id)) return;
    all.nodes.push_back(n);
    to.push_back(n);
  };
  for (const ir::Node* n : rows.nodes) {
    const ir::Value moved = n->is<ops::Rope>() ? n->inputs[0] : n->inputs[1];
    if (holds(rows, moved.node)) continue;
    const ir::Node& maker = behind_views(g, moved);
    if (!maker.is<ops::Matmul>() && !maker.is<ops::DequantMatmul>()) return std::nullopt;
    for (const ir::Node* view = &g.node(moved); view != &maker; view = &g.node(view->inputs[0]))
      add(view, out.moves);
    add(&maker, out.products);
  }
  if (out.products.empty()) return std::nullopt;
  for (const ir::Node* n : all.nodes) {
    if (holds(rows, n->id)) continue;
    for (const ir::Use& u : n->uses) {
      if (u.user == ir::kNoNode || !holds(all, u.user)) return std::nullopt;
    }
  }
  out.moves.insert(out.moves.end(), rows.nodes.begin(), rows.nodes.end());
  return out;
}

// The queries of an attention, and the caches that it reads.
std::vector<Group> moves_of(const ir::Graph& g) {
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
    if (group.nodes.size() >= 2) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace

std::vector<MovedProducts> moved_products(const ir::Graph& g) {
  std::vector<MovedProducts> out;
  for (const Group& rows : moves_of(g)) {
    if (auto moved = products_of(g, rows)) out.push_back(std::move(*moved));
  }
  return out;
}

std::vector<Group> rows_groups(const ir::Graph& g) {
  std::vector<Group> out;
  for (Group& rows : moves_of(g)) {
    if (const auto moved = products_of(g, rows);
        moved && moved->products.size() == 1 && moved->products[0]->is<ops::Matmul>()) {
      out.push_back({kTurnedGroup, moved->moves});
      out.back().nodes.push_back(moved->products[0]);
    }
    out.push_back(std::move(rows));
  }
  return out;
}

}  // namespace rlx::cuda
