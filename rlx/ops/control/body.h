// Checks and helpers common to operators with bodies.
#pragma once

#include "rlx/ir/inline.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// Types of a body's leaves in order, and of its outputs.
Shapes leaf_shapes(const Graph& body);
Shapes output_shapes(const Graph& body);

/// The body must exist, and its leaves have these types in order; `what` names the body in the error. Sizes
/// that cannot be decided become constraints.
void check_body(Infer& c, const GraphRef& body, std::string_view what, const Shapes& leaves);
/// Two types must agree; the error reads "<what>: A and B".
void check_same(Infer& c, const Shape& a, const Shape& b, std::string_view what);

/// A new body: `inputs` become its leaves, `build` emits its outputs.
template <class Build>
GraphRef make_body(std::string name, const Shapes& inputs, Build build) {
  auto g = std::make_shared<Graph>(std::move(name));
  Exprs leaves;
  for (size_t i = 0; i < inputs.size(); ++i) leaves.push_back({g.get(), g->input(cat("x", i), inputs[i])});
  const Exprs outputs = build(*g, leaves);
  g->set_outputs(Values(outputs.begin(), outputs.end()));
  return g;
}

/// `count` tensors from position `from`.
inline Exprs take(const Exprs& all, size_t from, size_t count) {
  return {all.begin() + long(from), all.begin() + long(from + count)};
}

inline Shapes shapes_of(const Exprs& tensors) {
  Shapes out;
  for (const Expr& t : tensors) out.push_back(t.shape());
  return out;
}

/// Concatenation of lists, for the operand lists of loops.
template <class T>
std::vector<T> join_lists(std::initializer_list<std::vector<T>> lists) {
  std::vector<T> out;
  for (const auto& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

}  // namespace rlx::ops
