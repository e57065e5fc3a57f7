// Asking a target about a node.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"

namespace rlx::passes {

/// Whether the target runs a node of this graph, all of whose values lie row by row. Sizes are known.
ir::Support runs(const ir::Target&, const ir::Graph&, const ir::Node&);

}  // namespace rlx::passes
