// Reversal along axes.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Flip {
  static constexpr std::string_view name = "flip", summary = "Order of elements reversed along axes.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[.., i, ..] = x[.., size - 1 - i, ..] along each of `axes` (none listed: all)";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    std::vector<int> axes;
    static constexpr auto fields() {
      return std::tuple{field("axes", &Attrs::axes, "axes to reverse; empty means all")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::optional<Layout> view(const View&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr flip(Expr x, std::vector<int> axes);

}  // namespace rlx::ops
