#include <set>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ir/clone.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::cuda {
namespace {

std::optional<ir::Graph> joined(const ir::Graph& body, const ir::Target& target) {
  Group front{kRegionGroup, {}}, behind{kRegionGroup, {}};
  std::set<ir::NodeId> later;  // the product and what is made of it
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf || n->is<ops::Transpose>()) continue;
    if (n->is<ops::Matmul>()) {
      if (!later.empty()) return std::nullopt;
      later.insert(n->id);
      continue;
    }
    if (!n->op->traits.elementwise && !(n->is<ops::Fused>() && !reduces(*n))) return std::nullopt;
    bool waits = false;
    for (const ir::Value v : n->inputs) waits = waits || later.contains(v.node);
    if (waits) later.insert(n->id);
    (waits ? behind : front).nodes.push_back(n);
  }
  std::vector<Group> groups;
  for (Group* g : {&front, &behind}) {
    if (g->nodes.size() > 1) groups.push_back(std::move(*g));
  }
  if (later.empty() || groups.empty()) return std::nullopt;
  return backend::with_groups(body, target, groups);
}

}  // namespace

std::optional<ir::Graph> with_joined_sides(const ir::Graph& g, const ir::Target& target) {
  bool changed = false;
  ir::Graph out(g.name());
  ir::Cloner copy(out);
  for (const ir::NodeId id : g.leaves()) copy.copy(g.node(id));
  for (const ir::Node* n : g.nodes()) {
    if (n->op->traits.leaf) continue;
    std::optional<ir::Graph> body;
    if (n->is<ops::Scan>()) body = joined(*n->as<ops::Scan>().body, target);
    if (!body) {
      copy.copy(*n);
      continue;
    }
    ops::Scan::Attrs attrs = n->as<ops::Scan>();
    attrs.body = std::make_shared<const ir::Graph>(std::move(*body));
    copy.copy(*n, std::make_shared<ops::Scan::Attrs>(std::move(attrs)));
    changed = true;
  }
  copy.copy_outputs(g);
  if (!changed) return std::nullopt;
  return out;
}

}  // namespace rlx::cuda
