// From an operator struct to its OpDef. The struct is the whole definition of an operator:
//
//   struct Cumsum {
//     static constexpr std::string_view name = "cumsum";
//     static constexpr std::string_view summary = "Running sum along one axis.";
//     static constexpr std::string_view doc = "y[..., i, ...] = sum of x[..., j, ...] over j <= i";
//     static constexpr std::string_view operands = "x";         // "q, k, v, mask?"   "parts..."
//     static constexpr std::string_view results = "y";          // default "y"
//     static constexpr Traits traits{.linear = true};           // default none
//     struct Attrs { ... fields() ... };                        // or: using Attrs = NoAttrs;
//     static Shapes infer(Infer&, Attrs&);                      // required
//     static Literals reference(const Eval&, const Attrs&);     // this, or
//     static Exprs decompose(const Lower&, const Attrs&);     // this, or both
//     static Exprs vjp(const Vjp&, const Attrs&);             // where the decomposition does not give it
//     static Exprs jvp(const Jvp&, const Attrs&);             // default: linear trait, decomposition, or
//                                                               // the transpose of vjp
//     static Exprs vmap(const Vmap&, const Attrs&);           // default: elementwise trait,
//                                                               // decomposition, or a loop
//     static std::vector<OpSample<Attrs>> samples();            // five or more in this library; programs
//                                                               // may leave them out
//     static std::optional<Layout> view(const View&, const Attrs&);     // where the result is a view of operand 0
//     static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);  // default: of
//                                                               // composites' parts, else one per result element
//   };
// Sources that only build or ask for nodes need no more than this. Programs with records of their own include
// rlx/ir/build_def.h, which makes the OpDef of a record.
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"

namespace rlx::ir {

/// A case for the conformance run, as an operator's struct gives it (Sample has the words of `inputs`).
template <class Attrs>
struct OpSample {
  Attrs attrs;
  std::vector<std::string> inputs;
};

/// Appends one operator and returns its results.
template <OpRecord Op>
Exprs make_all(Graph& g, typename Op::Attrs attrs, const Values& inputs) {
  const NodeId id = g.append(def<Op>(), std::make_shared<typename Op::Attrs>(std::move(attrs)), inputs);
  Exprs out;
  for (uint32_t i = 0; i < g.node(id).shapes.size(); ++i) out.push_back({&g, g.value(id, i)});
  return out;
}

/// As make_all, for operators with one result (or where only the first is wanted).
template <OpRecord Op>
Expr make(Graph& g, typename Op::Attrs attrs, const Values& inputs) {
  const NodeId id = g.append(def<Op>(), std::make_shared<typename Op::Attrs>(std::move(attrs)), inputs);
  return {&g, g.value(id)};
}

}  // namespace rlx::ir
