// Forward mode: tangents flow with the computation.
#pragma once

#include "rlx/transform/walk.h"

namespace rlx::transform {

/// Appends to `g` the tangents of its outputs, given tangents of `inputs` (empty is zero); returns one per
/// output, empty where none arrives. A node uses, in this order: its jvp rule; itself on the tangents when it
/// is linear; the transpose of its vjp rule. Other composites must be expanded before. With `renew`, rules
/// may put new results in place of a node's (a loop that carries tangents beside values), so that nothing
/// runs twice; without, no value of the graph depends on a tangent afterwards.
Exprs push_forward(Graph& g, const Values& inputs, const Exprs& tangents, bool renew = true);

/// transform::jvp, and the form without renewed results.
Graph jvp_graph(const Graph& g, const std::vector<std::string>& wrt, bool renew);

bool needs_expansion_for_jvp(const Node& n);

}  // namespace rlx::transform
