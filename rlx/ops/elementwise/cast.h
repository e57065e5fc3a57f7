// Change of element type.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Cast {
  static constexpr std::string_view name = "cast", summary = "Conversion to another element type.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = x as `to`: to an integer truncates toward zero and saturates (NaN is 0), to bool is x != 0, to a "
      "narrower float rounds half to even, real to complex has imaginary part 0";
  static constexpr Traits traits{.elementwise = true};
  struct Attrs {
    DType to = DType::f32;
    static constexpr auto fields() {
      return std::tuple{field("to", &Attrs::to, "element type of the result")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// `x` itself when it has the type already.
Expr cast(Expr x, DType to);

}  // namespace rlx::ops
