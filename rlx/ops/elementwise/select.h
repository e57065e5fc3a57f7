// Choosing between two tensors element by element.
#pragma once

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Where {
  static constexpr std::string_view name = "where";
  static constexpr std::string_view summary = "One of two tensors, chosen by a condition.";
  static constexpr std::string_view doc =
      "y = cond ? a : b, all three broadcast; a condition that is not bool counts as cond != 0. The side not "
      "taken gets gradient 0, whatever it holds";
  static constexpr std::string_view operands = "cond, a, b";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr where(Expr cond, Expr a, Expr b);

}  // namespace rlx::ops
