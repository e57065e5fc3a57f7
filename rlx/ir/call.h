// Before a graph runs: which value belongs to which leaf, and which sizes the values imply. Only types are
// looked at, so whoever runs graphs can use it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::ir {

using NamedShapes = std::map<std::string, Shape>;

/// Whether a value of the given type may stand where the declared one is: rank, dtype and the extents that are numbers agree.
bool may_be(const Shape& declared, const Shape& given);

struct Call {
  std::vector<std::string> order;  // names of the leaves, in order of Graph::leaves()
  DimBinding sizes;                // every symbol whose size the values tell
};

/// Values by name. Every missing, unknown and misfit one is told in one error. A leaf of `2*n` or `past+seq`
/// tells a symbol where there is one solution; what stays open is checked when the graph is bound.
Call match_call(const Graph&, const NamedShapes&);

/// As match_call, for the types of values in order of leaves().
DimBinding solve_sizes(const Graph&, std::span<const Shape> leaves);

}  // namespace rlx::ir
