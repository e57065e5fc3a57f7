// The ground of rlx::Graph: how a builder method enters the graph.
//
// The methods of rlx::Graph are spread over themes, one class and header each, that know nothing of each other:
// rlx::Graph derives from all of them. None has data: a method names its operands, runs the operator's free
// function and checks what the caller declared. Every method takes last a shape, which is checked and never
// overrides, and the caller's place, which errors and dumps show. When anything is wrong, nothing is appended.
#pragma once

#include <optional>
#include <source_location>
#include <utility>

#include "rlx/ir/graph.h"

namespace rlx {

using ir::GraphRef;
using ir::NodeId;
using ir::Value;
using ir::Values;
using Loc = std::source_location;
/// A result type the caller expects; a different one is a ShapeError.
using Declared = std::optional<Shape>;

class Graph;

namespace detail {
void truncate(ir::Graph& g, size_t len);
ir::Exprs on_graph(ir::Graph& g, const Values& values);
ir::Expr checked(ir::Expr result, const Declared& declared);
/// An error that names no place yet names this one.
void name_place(Error& e, const ir::OriginRef& origin);
void name_place(Error& e, const Loc& loc);
}  // namespace detail

/// Runs `call`, whose nodes and errors carry the caller's place; when it throws, what it appended is gone again.
template <class Call>
auto build_at(ir::Graph& g, const Loc& loc, Call call) {
  const size_t before = g.len();
  const ir::LocationScope scope(g, loc);
  try {
    return call();
  } catch (Error& e) {
    detail::name_place(e, g.current_origin());
    detail::truncate(g, before);
    throw;
  } catch (...) {
    detail::truncate(g, before);
    throw;
  }
}

/// The same where it is not known yet in which graph it will stand.
template <class Call>
decltype(auto) run_at(const Loc& loc, Call call) {
  try {
    return call();
  } catch (Error& e) {
    detail::name_place(e, loc);
    throw;
  }
}

/// What every theme needs; `Theme` is the class that derives from it and is itself a base of rlx::Graph.
template <class Theme>
class BuilderTheme {
 protected:
  BuilderTheme() = default;
  ~BuilderTheme() = default;
  BuilderTheme(const BuilderTheme&) = default;
  BuilderTheme& operator=(const BuilderTheme&) = default;

  ir::Graph& graph();  // the graph this is a part of; defined in rlx/lang/graph.h

  ir::Expr t(Value v) { return {&graph(), v}; }
  ir::Exprs ts(const Values& values) { return detail::on_graph(graph(), values); }
  /// Empty where the caller gave none.
  ir::Expr t(const std::optional<Value>& v) { return v ? t(*v) : ir::Expr{}; }

  template <class Call>
  Value one(const Declared& declared, const Loc& loc, Call call) {
    return build_at(graph(), loc, [&]() -> Value { return detail::checked(call(), declared); });
  }
  template <class Call>
  std::pair<Value, Value> two(const Loc& loc, Call call) {
    return build_at(graph(), loc, [&]() -> std::pair<Value, Value> {
      const auto& [a, b] = call();
      return {a, b};
    });
  }
  template <class Call>
  Values many(const Loc& loc, Call call) {
    return build_at(graph(), loc, [&] {
      const ir::Exprs results = call();
      return Values(results.begin(), results.end());
    });
  }
};

}  // namespace rlx
