// The nodes of a graph by where they belong: the labels around them and the block they were lowered from. For pictures.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::picture {

/// Nodes that have a place in common. Leaves and constants stand with those that use them.
struct Group {
  std::string place;                   // the last part: of layer3/attention attention
  std::vector<const ir::Node*> nodes;  // in none of the groups below; operands before users
  std::vector<Group> groups;

  /// The nodes of the groups below too.
  std::vector<const ir::Node*> all_nodes() const;
};

Group group_by_place(const ir::Graph&);

/// One of what a group holds: a node, or a group that is drawn as one thing.
struct Member {
  const ir::Node* node = nullptr;  // null: the group
  const Group* group = nullptr;
};

/// The members of `group`, operands before users. Groups that something leaves and comes back to have no place in such an order:
/// they are dissolved into `group`.
std::vector<Member> members_in_order(Group& group);

}  // namespace rlx::picture
