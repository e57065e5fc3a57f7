// Inputs, params, constants, and any operator by its name.
//
// Leaves stand in the order in which the program names them. C++ may evaluate the operands of one expression in
// any order, so the leaves that a function makes are ordered by line and column, not by time:
//
//   g.sub(g.input("carry", s), g.input("step", s))        // carry, then step, whichever was made first
//
// Where a place is met again, in a loop or a helper function, the next round of leaves begins behind the last one.
#pragma once

#include "rlx/lang/builders/builder.h"

namespace rlx {

/// Leaves, constants, and any operator by name.
class LeafBuilder : public ir::Graph {
 public:
  using ir::Graph::Graph;
  LeafBuilder(ir::Graph g) : ir::Graph(std::move(g)) {}  // NOLINT: a graph is a graph

  /// A tensor given at run time.
  Value input(const std::string& name, const Shape& shape, const Loc& loc = Loc::current());
  /// A weight, set once by name.
  Value param(const std::string& name, const Shape& shape, const Loc& loc = Loc::current());
  /// A tensor that is part of the graph.
  Value constant(const Literal& value, const Loc& loc = Loc::current());
  /// Row-major contents; the shape gives extents and dtype, values are converted.
  Value constant(std::span<const double> data, const Shape& shape, const Loc& loc = Loc::current());
  template <class T>
  Value constant(const std::vector<T>& data, const Shape& shape, const Loc& loc = Loc::current()) {
    return constant(std::vector<double>(data.begin(), data.end()), shape, loc);
  }
  Value constant(const std::vector<double>& data, const Shape& shape, const Loc& loc = Loc::current()) {
    return constant(std::span<const double>(data), shape, loc);
  }

  /// Any operator by name. `attrs` null takes the defaults. With several results, the first is returned and
  /// `value(node, i)` names the others; `declared` is the type of the first.
  Value append_node(std::string_view op, const Values& inputs, const Declared& shape = {},
                    const std::string& name = {}, ir::AttrsRef attrs = nullptr,
                    const Loc& loc = Loc::current());
  /// As append_node, with the operator's default attributes.
  Value add_node(std::string_view op, const Values& inputs, const Declared& shape = {},
                 const Loc& loc = Loc::current());

 private:
  Value placed(Value leaf);
};

}  // namespace rlx
