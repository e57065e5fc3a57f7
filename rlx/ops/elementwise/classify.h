// Tests for NaN and infinity.
#pragma once

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct IsNan {
  static constexpr std::string_view name = "is_nan", summary = "Whether an element is not a number.",
                                    doc = "y = x is NaN; of a complex number, either part", operands = "x";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct IsFinite {
  static constexpr std::string_view name = "is_finite",
                                    summary = "Whether an element is neither infinite nor NaN.",
                                    doc = "y = |x| < inf; of a complex number, both parts", operands = "x";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr is_nan(Expr x);
Expr is_finite(Expr x);

}  // namespace rlx::ops
