// A wall for derivatives.
#pragma once

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct StopGradient {
  static constexpr std::string_view name = "stop_gradient",
                                    summary = "The operand, held constant for derivatives.",
                                    doc = "y = x; the derivative is defined as 0, in both modes",
                                    operands = "x";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true, .surrogate_gradient = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::optional<Layout> view(const View&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr stop_gradient(Expr x);

}  // namespace rlx::ops
