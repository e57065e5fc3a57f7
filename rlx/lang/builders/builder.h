// The ground of rlx::Graph: how a builder method enters the graph.
//
// The methods of rlx::Graph are spread over a chain of classes by theme, each deriving from the one before.
// None of them has data: a method names its operands, runs the operator's free function and checks what the
// caller declared. Every method takes last a shape, which is checked and never overrides, and the caller's
// place, which errors and dumps show. When anything is wrong, nothing is appended.
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

namespace detail {
void truncate(ir::Graph& g, size_t len);
}

/// Runs `call`, whose nodes carry the caller's place; when it throws, what it appended is gone again.
template <class Call>
auto build_at(ir::Graph& g, const Loc& loc, Call call) {
  const size_t before = g.len();
  try {
    const ir::LocationScope scope(g, loc);
    return call();
  } catch (...) {
    detail::truncate(g, before);
    throw;
  }
}

class Builder : public ir::Graph {
 public:
  using ir::Graph::Graph;
  Builder(ir::Graph g) : ir::Graph(std::move(g)) {}  // NOLINT: a graph is a graph

  Value input(const std::string& name, const Shape& shape, const Loc& loc = Loc::current());
  Value param(const std::string& name, const Shape& shape, const Loc& loc = Loc::current());
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
  Value add_node(std::string_view op, const Values& inputs, const Declared& shape = {},
                 const Loc& loc = Loc::current());

 protected:
  ir::Expr t(Value v) { return {this, v}; }
  ir::Exprs ts(const Values& values);
  /// Empty where the caller gave none.
  ir::Expr t(const std::optional<Value>& v) { return v ? t(*v) : ir::Expr{}; }

  template <class Call>
  Value one(const Declared& declared, const Loc& loc, Call call) {
    return build_at(*this, loc, [&]() -> Value { return checked(call(), declared); });
  }
  template <class Call>
  std::pair<Value, Value> two(const Loc& loc, Call call) {
    return build_at(*this, loc, [&]() -> std::pair<Value, Value> {
      const auto& [a, b] = call();
      return {a, b};
    });
  }
  template <class Call>
  Values many(const Loc& loc, Call call) {
    return build_at(*this, loc, [&] {
      const ir::Exprs results = call();
      return Values(results.begin(), results.end());
    });
  }

 private:
  ir::Expr checked(ir::Expr result, const Declared& declared) const;
};

}  // namespace rlx
