// A graph inside another: its nodes, on given values instead of its leaves.
#pragma once

#include "rlx/ir/clone.h"

namespace rlx::ir {

/// Copies every node of `from` into `to`, with the leaves of `from` bound to `leaves` in order; returns the
/// values of its outputs.
Values inline_graph(Graph& to, const Graph& from, std::span<const Value> leaves);

/// As above, on tensors of `to`.
Exprs inline_graph(Graph& to, const Graph& from, const Exprs& leaves);

}  // namespace rlx::ir
