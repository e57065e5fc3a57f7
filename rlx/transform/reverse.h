// Reverse mode: cotangents flow from outputs to inputs, node by node, through the operators' vjp rules.
#pragma once

#include "rlx/transform/walk.h"

namespace rlx::transform {

/// Appends to `g` the nodes that carry `seeds` (one per value of `outputs`, empty is zero) back to `wrt`, and
/// returns one gradient per value of `wrt`, empty where none arrives. Only nodes with id >= `first` are
/// walked. Composite operators without a vjp rule must be expanded before (prepare_graph_for_ad).
Exprs backward(Graph& g, const Values& outputs, const Exprs& seeds, const Values& wrt, NodeId first = 0);

/// Whether reverse mode has to see through this composite.
bool needs_expansion_for_vjp(const Node& n);

}  // namespace rlx::transform
