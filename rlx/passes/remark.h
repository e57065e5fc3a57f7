// What a pass tried, and what came of it.
#pragma once

#include <string>

#include "rlx/ir/graph.h"

namespace rlx::passes {

struct Remark {
  std::string node;  // what it is about, as label_for_remark says it
  std::string text;
  bool applied = false;
  bool on_request = false;  // nothing was tried: told only to who asks about this node
};

/// What a reader finds in the text of the graph: the name of the node, else what it computes, "add(x, mul(r, ..))". Numbers of
/// nodes change with every pass.
std::string label_for_remark(const ir::Graph&, const ir::Node&);

}  // namespace rlx::passes
