// Whether two nodes do the same, operands aside.
#pragma once

#include "rlx/base/hash.h"
#include "rlx/ir/graph.h"

namespace rlx::ir {

/// Operator, attributes (bodies and constants included), result types and number of operands.
bool same_operation(const Node&, const Node&);
/// What same_operation compares, as part of a hash.
void add_operation(Hasher&, const Node&);

}  // namespace rlx::ir
