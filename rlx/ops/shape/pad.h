// Room around a tensor.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Pad {
  static constexpr std::string_view name = "pad", summary = "A tensor with a constant border.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[i] = x[i - low] where that lies inside x, else value; axis k has size low[k] + size + high[k]";
  struct Attrs {
    Dims low, high;
    double value = 0;
    static constexpr auto fields() {
      return std::tuple{field("low", &Attrs::low, "places added before each axis; empty means none"),
                        field("high", &Attrs::high, "places added behind each axis; empty means none"),
                        field("value", &Attrs::value, "contents of the border, converted as by cast")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr pad(Expr x, Dims low, Dims high, double value = 0);

}  // namespace rlx::ops
