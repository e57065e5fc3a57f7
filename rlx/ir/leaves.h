// The nodes without operands: run-time inputs, weights, constants and fills.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ir {

/// Attributes of inputs and params.
struct NamedLeaf {
  std::string name;
  Shape shape;
  static constexpr auto fields() {
    return std::tuple{field("name", &NamedLeaf::name, "name by which it is set; unique in the graph"),
                      field("shape", &NamedLeaf::shape, "its type")};
  }
};

/// The name of an input or param.
const std::string& leaf_name(const Node& leaf);

struct Input {
  static constexpr std::string_view name = "input";
  static constexpr std::string_view summary = "A tensor given at run time.";
  static constexpr std::string_view doc = "y = the tensor bound to `name` for this run";
  static constexpr std::string_view operands = "";
  static constexpr Traits traits{.leaf = true};
  using Attrs = NamedLeaf;
  static Shapes infer(Infer&, Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Param {
  static constexpr std::string_view name = "param";
  static constexpr std::string_view summary = "A weight, set once by name.";
  static constexpr std::string_view doc = "y = the tensor bound to `name` for all runs";
  static constexpr std::string_view operands = "";
  static constexpr Traits traits{.leaf = true};
  using Attrs = NamedLeaf;
  static Shapes infer(Infer&, Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Constant {
  static constexpr std::string_view name = "constant";
  static constexpr std::string_view summary = "A tensor whose contents are part of the graph.";
  static constexpr std::string_view doc = "y = value";
  static constexpr std::string_view operands = "";
  struct Attrs {
    Literal value;
    static constexpr auto fields() { return std::tuple{field("value", &Attrs::value, "the contents")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Full {
  static constexpr std::string_view name = "full";
  static constexpr std::string_view summary = "A tensor of one repeated value; its size may be symbolic.";
  static constexpr std::string_view doc = "y[i] = value";
  static constexpr std::string_view operands = "";
  struct Attrs {
    Shape shape;
    double value = 0;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "type of the result"),
                        field("value", &Attrs::value, "the value, converted to the dtype as by cast")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr full(Graph&, const Shape&, double value);
// Of the type of another.
Expr zeros_like(Expr);
Expr ones_like(Expr);

}  // namespace rlx::ir
