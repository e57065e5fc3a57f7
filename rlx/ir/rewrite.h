// Passes that look at one node at a time. A rule sees a node of the old graph and emits what takes its place;
// everything else is copied. Bodies are rewritten by the same rule before the node that holds them, so a pass
// reaches the inside of loops and branches without asking for it.
//
//   const Graph out = rewrite(g, [](Cloner& copy, const Node& n) -> std::optional<Values> {
//     if (!n.is<ops::Neg>() || ...) return std::nullopt;  // copied as it is
//     return Values{...};                                  // one value of copy.to() per result
//   });
#pragma once

#include <functional>
#include <optional>

#include "rlx/ir/clone.h"

namespace rlx::ir {

/// The node has its rewritten bodies; its operands are still those of the old graph, copy.at(...) gives the
/// new ones. A leaf cannot be replaced.
using RewriteRule = std::function<std::optional<Values>(Cloner& copy, const Node& n)>;

/// A graph behind a pass.
struct Rewritten {
  Graph graph;
  size_t changes = 0;  // nodes replaced, in bodies too; with none, the graph equals the one given
};

/// Leaves, outputs and their names stay. A body that did not change is kept as the same object; one that is
/// held by several nodes is rewritten once.
Rewritten rewrite(const Graph& from, const RewriteRule& rule);

}  // namespace rlx::ir
