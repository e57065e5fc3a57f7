// A graph that goes wrong, made small.
#pragma once

#include <functional>

#include "rlx/ir/graph.h"
#include "rlx/ir/interpreter.h"

namespace rlx {

/// Whether a graph on these values for its leaves still goes wrong. An exception counts as a no: what does not run shows
/// nothing, unless the test itself says otherwise.
using StillWrong = std::function<bool(const ir::Graph&, const ir::NamedLiterals&)>;

/// The smallest graph found that still goes wrong.
struct Reduced {
  ir::Graph graph;
  ir::NamedLiterals values;
  size_t tests = 0;  // graphs tried
};

/// Leaves out outputs, cuts off what lies in front of a value (which becomes an input with the value it had), and puts an operand of
/// the same type in the place of a node, as long as the result still goes wrong. The graph must be static and wrong to begin
/// with.
Reduced reduce_graph(const ir::Graph&, const ir::NamedLiterals& values, const StillWrong&);

}  // namespace rlx
