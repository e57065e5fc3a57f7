// Copying one graph into another.
#pragma once

#include <unordered_map>

#include "rlx/ir/graph.h"

namespace rlx::ir {

struct ValueHash {
  size_t operator()(Value v) const { return (size_t(v.node) << 16 | v.index) * 0x9E3779B97F4A7C15ull; }
};
template <class T>
using ValueMap = std::unordered_map<Value, T, ValueHash>;

/// Copies every node of `from` into `to`, with the leaves of `from` bound to `leaves` in order; returns the
/// values of its outputs.
Values inline_graph(Graph& to, const Graph& from, std::span<const Value> leaves);

/// As above, on tensors of `to`.
Exprs inline_graph(Graph& to, const Graph& from, const Exprs& leaves);

}  // namespace rlx::ir
