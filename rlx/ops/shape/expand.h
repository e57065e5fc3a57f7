// Repetition along axes of size 1.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Expand {
  static constexpr std::string_view name = "expand", summary = "Broadcast to given extents.", operands = "x";
  static constexpr std::string_view doc =
      "y has extents `shape`; x is aligned to its right end, axes of size 1 and missing axes repeat. An "
      "entry -1 keeps the extent of x";
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
Expr expand(Expr x, Dims shape);

}  // namespace rlx::ops
