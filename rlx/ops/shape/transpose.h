// Permutation of axes.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Transpose {
  static constexpr std::string_view name = "transpose", summary = "Permutation of axes.", operands = "x";
  static constexpr std::string_view doc = "axis i of y is axis perm[i] of x; an empty perm reverses the axes";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    std::vector<int> perm;
    static constexpr auto fields() {
      return std::tuple{
          field("perm", &Attrs::perm, "for each axis of the result, the axis of x it comes from")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::optional<Layout> view(const View&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr transpose(Expr x, std::vector<int> perm);
/// Swaps the last two axes.
Expr swap_last(Expr x);
/// Moves one axis, keeping the order of the others.
Expr move_axis(Expr x, int from, int to);

}  // namespace rlx::ops
