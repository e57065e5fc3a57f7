// Building a small graph over given values and running it in one call.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/interpreter.h"

namespace rlx::test {

/// Results of `build(operands)` -> Expr or Exprs, with the operands as graph inputs of these values.
template <class Build>
Literals evaluate(const Literals& operands, Build&& build) {
  ir::Graph g("test");
  ir::Exprs in;
  for (size_t i = 0; i < operands.size(); ++i) in.push_back({&g, g.input(cat("x", i), operands[i].shape())});
  ir::Values outputs;
  if constexpr (std::is_same_v<decltype(build(in)), ir::Expr>) {
    outputs.push_back(build(in));
  } else {
    for (const ir::Expr& t : build(in)) outputs.push_back(t);
  }
  g.set_outputs(outputs);
  return ir::interpret(g, operands);
}

/// As evaluate, for one result, as numbers.
template <class Build>
std::vector<double> numbers(const Literals& operands, Build&& build) {
  return evaluate(operands, build)[0].to_reals();
}

/// An input of the given type in a graph that is never run, for calls that must be refused.
inline ir::Expr typed(ir::Graph& g, std::string_view type) {
  return {&g, g.input(cat("x", g.len()), parse_shape(type))};
}

}  // namespace rlx::test
