// The passes, in order: the table of contents of the compiler.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"
#include "rlx/runtime/options.h"

namespace rlx::runtime {

/// An equal graph that the target runs faster; sizes may stay symbolic. Leaves and outputs keep names, types and order.
ir::Graph optimise(const ir::Graph&, const ir::Target&, const CompileOptions&);

}  // namespace rlx::runtime
