// Nodes that compute the same value become one.
#pragma once

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// Merges nodes that have the same operator, attributes and operands.
///   a = exp(x); b = exp(x); y = add(a, b)   =>   a = exp(x); y = add(a, a)
/// Operands of commutative operators may stand in either order (may_exchange). Impure nodes are kept apart.
ir::Rewritten cse(ir::Graph);

}  // namespace rlx::passes
