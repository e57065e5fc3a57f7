// What a node is called in messages.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/leaves.h"

namespace rlx::runtime {

/// "h matmul", or "%3 matmul" for a node without a name.
inline std::string label_of(const ir::Node& n) {
  const std::string& name = n.op->traits.leaf ? ir::leaf_name(n) : n.name;
  return name.empty() ? cat("%", n.id, " ", n.op->name) : cat(name, " ", n.op->name);
}

}  // namespace rlx::runtime
