// Counting, and vectors with a single one.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Iota {
  static constexpr std::string_view name = "iota", summary = "Positions along one axis.", operands = "";
  static constexpr std::string_view doc = "y[.., i, ..] = i along `axis`, the same for all other indices";
  struct Attrs {
    Shape shape{DType::i32, {0}};
    int axis = 0;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "type of the result"),
                        field("axis", &Attrs::axis, "axis to count along; negative counts from the end")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct OneHot {
  static constexpr std::string_view name = "one_hot", summary = "Indices as vectors with a single one.",
                                    operands = "indices";
  static constexpr std::string_view doc =
      "y[.., d, ..] = 1 where d = indices[..], else 0, for 0 <= d < depth along a new axis; an index out of "
      "range gives zeros";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    Dim depth = 0;
    int axis = -1;
    DType dtype = DType::f32;
    static constexpr auto fields() {
      return std::tuple{field("depth", &Attrs::depth, "size of the new axis"),
                        field("axis", &Attrs::axis, "place of the new axis in the result"),
                        field("dtype", &Attrs::dtype, "element type of the result")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr iota(Graph&, const Shape& shape, int axis);
Expr one_hot(Expr indices, Dim depth, int axis = -1, DType dtype = DType::f32);

}  // namespace rlx::ops
