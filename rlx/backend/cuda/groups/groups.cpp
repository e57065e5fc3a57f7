#include "rlx/backend/cuda/groups/groups.h"

#include <algorithm>

#include "rlx/ops/control/fused.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::cuda {

bool reduces(const ir::Node& fused) {
  for (const ir::Node* n : fused.as<ops::Fused>().body->nodes()) {
    if (n->is<ops::Reduce>()) return true;
  }
  return false;
}

std::vector<size_t> order_of(const ir::Graph& g) {
  std::vector<size_t> order(g.next_id());
  size_t i = 0;
  for (const ir::Node* n : g.nodes()) order[n->id] = i++;
  return order;
}

namespace {

// A weight, or one that was cast or turned: it waits for no other step.
bool is_of_leaves(const ir::Graph& g, ir::Value v, int depth) {
  const ir::Node& n = g.node(v);
  if (n.op->traits.leaf) return true;
  return depth > 0 && !n.inputs.empty() && std::all_of(n.inputs.begin(), n.inputs.end(), [&](ir::Value x) {
           return is_of_leaves(g, x, depth - 1);
         });
}

}  // namespace

const ir::Node* elements_behind(const ir::Graph& g, const std::vector<size_t>& order, size_t first,
                                const std::vector<const ir::Node*>& products, size_t most) {
  const ir::Node* reader = nullptr;
  for (const ir::Node* p : products) {
    if (p->shapes[0] != products.front()->shapes[0]) return nullptr;
    for (const ir::Use& u : p->uses) {
      if (u.user == ir::kNoNode || (reader && reader->id != u.user)) return nullptr;
      reader = &g.node(u.user);
    }
  }
  if (!reader || reader->shapes.size() > most) return nullptr;
  const bool region = reader->is<ops::Fused>() && !reduces(*reader);
  if (!region && !reader->op->traits.elementwise) return nullptr;
  for (const Shape& s : reader->shapes) {
    if (s.dims() != products.front()->shapes[0].dims()) return nullptr;
  }
  for (const ir::Value v : reader->inputs) {
    const bool product =
        std::any_of(products.begin(), products.end(), [&](auto* p) { return p->id == v.node; });
    if (!product && order[v.node] > first && !is_of_leaves(g, v, 3)) return nullptr;
  }
  return reader;
}

namespace {

// Where groups wait for each other none can be made; then the largest is.
std::optional<ir::Graph> with_many_regions(const ir::Graph& g, const ir::Target& target) {
  const std::vector<Group> groups = many_groups(g);
  if (groups.empty()) return std::nullopt;
  if (auto joined = backend::with_groups(g, target, groups)) return joined;
  const auto largest = std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.nodes.size() < b.nodes.size();
  });
  return backend::with_groups(g, target, {&*largest, 1});
}

}  // namespace

std::optional<ir::Graph> with_groups(const ir::Graph& given, const ir::Target& target) {
  std::optional<ir::Graph> changed;
  for (const auto change :
       {with_sums_behind_loops, with_joined_sides, with_views_in_front, with_recomputation}) {
    if (auto next = change(changed ? *changed : given, target)) changed = std::move(next);
  }
  const ir::Graph& g = changed ? *changed : given;
  std::vector<Group> groups;
  for (const auto find :
       {product_groups, conv_groups, rows_groups, loss_groups, gradients_groups, element_groups}) {
    for (Group& group : find(g)) groups.push_back(std::move(group));
  }
  if (auto joined = backend::with_groups(g, target, groups)) changed = std::move(joined);
  // Sums of one value are one region before they may be a part of the gradients of a norm.
  for (const auto find : {region_groups, sums_groups}) {
    const ir::Graph& now = changed ? *changed : given;
    if (auto joined = backend::with_groups(now, target, find(now))) changed = std::move(joined);
  }
  if (auto joined = with_many_regions(changed ? *changed : given, target)) changed = std::move(joined);
  // Last: an attention with a table is a group, which others would take for a region of elements.
  if (auto tabled = with_mask_tables(changed ? *changed : given, target)) changed = std::move(tabled);
  return changed;
}

}  // namespace rlx::cuda
