// Limiting elements to a range.
#pragma once

#include <limits>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Clamp {
  static constexpr std::string_view name = "clamp", summary = "Elements limited to a range.", operands = "x";
  static constexpr std::string_view doc =
      "y = min(max(x, lo), hi); NaN stays NaN. The derivative is 1 for lo <= x <= hi, else 0. For integers "
      "the bounds are whole numbers or infinite";
  static constexpr Traits traits{.elementwise = true};
  struct Attrs {
    double lo = -std::numeric_limits<double>::infinity();
    double hi = std::numeric_limits<double>::infinity();
    static constexpr auto fields() {
      return std::tuple{field("lo", &Attrs::lo, "smallest value of the result"),
                        field("hi", &Attrs::hi, "largest value of the result; not below lo")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr clamp(Expr x, double lo, double hi);

}  // namespace rlx::ops
