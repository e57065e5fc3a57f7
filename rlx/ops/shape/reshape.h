// The same elements under other extents.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Reshape {
  static constexpr std::string_view name = "reshape",
                                    summary = "The same elements, row-major, under other extents.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[i] = x[i] in row-major order. One entry of `shape` may be -1: it is the number of elements divided "
      "by the others, which must divide it. The number of elements does not change";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    Dims shape;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "extents of the result")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::optional<Layout> view(const View&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// `x` itself when it has these extents already.
Expr reshape(Expr x, Dims shape);
/// Inserts an axis of size 1 so that it is `axis` of the result.
Expr unsqueeze(Expr x, int axis);
/// Removes axes of size 1.
Expr squeeze(Expr x, int axis);

}  // namespace rlx::ops
