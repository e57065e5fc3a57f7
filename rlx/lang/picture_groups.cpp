#include "rlx/lang/picture_groups.h"

#include <algorithm>
#include <optional>
#include <set>

namespace rlx::picture {
namespace {

using Places = std::vector<std::string>;

Places places_of(const ir::Node& n) {
  Places out;
  if (n.origin == nullptr) return out;
  std::string_view rest = n.origin->label;
  while (!rest.empty()) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    out.emplace_back(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  // The label that a block was made under is its name.
  const std::string& block = n.origin->block;
  if (!block.empty() && (out.empty() || !block.starts_with(out.back()))) out.push_back(block);
  return out;
}

// What all users of a leaf or constant have in common.
Places common_place(const ir::Node& n, const std::map<ir::NodeId, Places>& places) {
  std::optional<Places> common;
  for (const ir::Use use : n.uses) {
    const Places of_user = use.user == ir::kNoNode ? Places() : places.at(use.user);
    if (!common) common = of_user;
    const auto [end, _] = std::mismatch(common->begin(), common->end(), of_user.begin(), of_user.end());
    common->erase(end, common->end());
  }
  return common.value_or(Places());
}

void collect(const Group& g, std::vector<const ir::Node*>& out) {
  out.insert(out.end(), g.nodes.begin(), g.nodes.end());
  for (const Group& inside : g.groups) collect(inside, out);
}

// Members with their users: edges between nodes of two members are one.
class Order {
 public:
  explicit Order(const std::vector<Member>& members)
      : members_(members), users_(members.size()), waits_for_(members.size(), 0) {
    std::map<ir::NodeId, size_t> at;
    std::vector<std::vector<const ir::Node*>> nodes;
    for (const Member& m : members) {
      nodes.push_back(m.node != nullptr ? std::vector{m.node} : m.group->all_nodes());
      for (const ir::Node* n : nodes.back()) at[n->id] = nodes.size() - 1;
    }
    for (size_t i = 0; i < members.size(); ++i) {
      for (const ir::Node* n : nodes[i]) {
        for (const ir::Value v : n->inputs) {
          const auto from = at.find(v.node);
          if (from != at.end() && from->second != i && users_[from->second].insert(i).second) ++waits_for_[i];
        }
      }
    }
  }

  // Those whose operands all stand before them, in the order given where that is one.
  std::vector<Member> sorted() {
    std::set<size_t> ready;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (waits_for_[i] == 0) ready.insert(i);
    }
    std::vector<Member> out;
    while (!ready.empty()) {
      const size_t i = *ready.begin();
      ready.erase(ready.begin());
      out.push_back(members_[i]);
      for (const size_t user : users_[i]) {
        if (--waits_for_[user] == 0) ready.insert(user);
      }
    }
    return out;
  }

  // After `sorted`: the first group on a way that leaves it and comes back.
  const Group* first_on_a_circle() const {
    std::vector<bool> left(members_.size());
    for (size_t i = 0; i < left.size(); ++i) left[i] = waits_for_[i] > 0;
    for (bool changed = true; changed;) {  // what only waits for a circle is none
      changed = false;
      for (size_t i = 0; i < left.size(); ++i) {
        const bool waited_for =
            std::any_of(users_[i].begin(), users_[i].end(), [&](size_t user) { return left[user]; });
        if (left[i] && !waited_for) left[i] = false, changed = true;
      }
    }
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] && members_[i].group != nullptr) return members_[i].group;
    }
    return nullptr;
  }

 private:
  const std::vector<Member>& members_;
  std::vector<std::set<size_t>> users_;
  std::vector<size_t> waits_for_;
};

}  // namespace

std::vector<const ir::Node*> Group::all_nodes() const {
  std::vector<const ir::Node*> out;
  collect(*this, out);
  return out;
}

Group group_by_place(const ir::Graph& g) {
  std::map<ir::NodeId, Places> places;
  for (const ir::Node* n : g.nodes()) places[n->id] = places_of(*n);
  for (const ir::Node* n : g.nodes()) {
    if (n->inputs.empty()) places[n->id] = common_place(*n, places);
  }
  Group all;
  for (const ir::Node* n : g.nodes()) {
    Group* at = &all;
    for (const std::string& place : places[n->id]) {
      const auto same = std::find_if(at->groups.begin(), at->groups.end(),
                                     [&](const Group& inside) { return inside.place == place; });
      at = same != at->groups.end() ? &*same : &at->groups.emplace_back(Group{place, {}, {}});
    }
    at->nodes.push_back(n);
  }
  return all;
}

std::vector<Member> members_in_order(Group& group) {
  while (true) {
    std::vector<Member> members;
    for (const ir::Node* n : group.nodes) members.push_back({n, nullptr});
    for (const Group& g : group.groups) members.push_back({nullptr, &g});
    Order order(members);
    std::vector<Member> out = order.sorted();
    const Group* wrong = order.first_on_a_circle();
    if (wrong == nullptr) return out;
    Group dissolved = std::move(group.groups[size_t(wrong - group.groups.data())]);
    group.groups.erase(group.groups.begin() + (wrong - group.groups.data()));
    group.nodes.insert(group.nodes.end(), dissolved.nodes.begin(), dissolved.nodes.end());
    std::move(dissolved.groups.begin(), dissolved.groups.end(), std::back_inserter(group.groups));
  }
}

}  // namespace rlx::picture
