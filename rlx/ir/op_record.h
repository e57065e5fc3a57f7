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
//     static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);  // default: one
//                                                               // per result element
//     static constexpr int in_place = 0;                        // the operand that result 0 may overwrite
//   };
#pragma once

#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"

namespace rlx::ir {

template <class Attrs>
struct OpSample {
  Attrs attrs;
  std::vector<std::string> inputs;
};

namespace detail {
std::vector<std::string> split_names(std::string_view list);
void set_arity(OpDef&);
}  // namespace detail

template <OpRecord Op>
OpDef build_def() {
  using Attrs = typename Op::Attrs;
  OpDef d;
  d.name = Op::name;
  d.summary = Op::summary;
  d.doc = Op::doc;
  d.operands = detail::split_names(Op::operands);
  d.results = {"y"};
  if constexpr (requires { Op::results; }) d.results = detail::split_names(Op::results);
  if constexpr (requires { Op::traits; }) d.traits = Op::traits;
  detail::set_arity(d);
  d.fields = describe_fields<Attrs>();
  d.copy_attrs = [](const void* a) -> std::shared_ptr<void> {
    return a ? std::make_shared<Attrs>(*static_cast<const Attrs*>(a)) : std::make_shared<Attrs>();
  };
  d.infer = [](Infer& c, void* a) { return Op::infer(c, *static_cast<Attrs*>(a)); };
  if constexpr (requires { &Op::reference; }) {
    d.reference = [](const Eval& c, const void* a) {
      return Op::reference(c, *static_cast<const Attrs*>(a));
    };
  }
  if constexpr (requires { &Op::decompose; }) {
    d.decompose = [](const Lower& c, const void* a) {
      return Op::decompose(c, *static_cast<const Attrs*>(a));
    };
  }
  if constexpr (requires { &Op::vjp; }) {
    d.vjp = [](const Vjp& c, const void* a) { return Op::vjp(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::jvp; }) {
    d.jvp = [](const Jvp& c, const void* a) { return Op::jvp(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::vmap; }) {
    d.vmap = [](const Vmap& c, const void* a) { return Op::vmap(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::view; }) {
    d.view = [](const View& c, const void* a) { return Op::view(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::operations; }) {
    d.operations = [](std::span<const Shape> in, std::span<const Shape> out, const void* a) {
      return Op::operations(in, out, *static_cast<const Attrs*>(a));
    };
  }
  if constexpr (requires { Op::in_place; }) d.in_place = Op::in_place;
  if constexpr (requires { &Op::samples; }) {
    d.samples = [] {
      std::vector<Sample> out;
      for (auto& s : Op::samples())
        out.push_back({std::make_shared<Attrs>(std::move(s.attrs)), std::move(s.inputs)});
      return out;
    };
  }
  return d;
}

template <OpRecord Op>
const OpDef& def() {
  static const OpDef d = build_def<Op>();
  return d;
}

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
