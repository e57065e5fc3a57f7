// Passes that replace single nodes, in the graph itself: what stays is not copied.
#pragma once

#include <functional>
#include <optional>

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// What takes the place of `n`: one value of the graph per result, of the same types; it may be made by appending to the graph.
/// Nothing where the node stays. Operands of `n` have been seen before it and are those that took their places.
using EditRule = std::function<std::optional<ir::Values>(ir::Graph& g, const ir::Node& n)>;

/// Applies the rule to every node but leaves, operands first and bodies before the node that holds them. As ir::rewrite, for
/// rules that need no old graph beside the new one. Outputs keep their names; a graph without changes is left as it is.
ir::Rewritten edit(ir::Graph graph, const EditRule& rule);

}  // namespace rlx::passes
