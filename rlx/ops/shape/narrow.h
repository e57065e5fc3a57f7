// A contiguous range along one axis.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Narrow {
  static constexpr std::string_view name = "narrow", summary = "A contiguous range of one axis.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[..., i, ...] = x[..., start + i, ...] for 0 <= i < len; the range must lie inside x";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    int axis = 0;
    Dim start = 0;
    Dim len = 0;
    static constexpr auto fields() {
      return std::tuple{field("axis", &Attrs::axis, "axis to cut; negative counts from the end"),
                        field("start", &Attrs::start, "first position"),
                        field("len", &Attrs::len, "how many")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::optional<Layout> view(const View&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr narrow(Expr x, int axis, Dim start, Dim len);

}  // namespace rlx::ops
