// What is known when a graph is compiled is computed then.
#pragma once

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// Replaces nodes whose operands are all constants by their value, computed by the reference rules in the types of the graph.
///   a = constant 2; b = constant 3; c = mul(a, b)   =>   c = constant 6
/// A result larger than its operands and than `most_bytes` is left for the run, as is a node whose rule refuses the values
/// and one that makes NaN of numbers: the error then comes where it belongs, and a check sees the step.
ir::Rewritten fold_constants(ir::Graph, int64_t most_bytes = 1 << 16);

}  // namespace rlx::passes
