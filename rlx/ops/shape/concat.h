// Joining along an existing axis.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Concat {
  static constexpr std::string_view name = "concat", summary = "Tensors joined along one axis.",
                                    operands = "first, parts...";
  static constexpr std::string_view doc =
      "y is the operands one after another along `axis`; all other sizes agree";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    int axis = 0;
    static constexpr auto fields() {
      return std::tuple{field("axis", &Attrs::axis, "axis to join; negative counts from the end")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr concat(const Exprs& parts, int axis);
/// Joins along a new axis.
Expr stack(const Exprs& parts, int axis);

}  // namespace rlx::ops
