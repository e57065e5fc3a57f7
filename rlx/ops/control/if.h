// A branch: one of two bodies runs.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct If {
  static constexpr std::string_view name = "if", summary = "One of two bodies, chosen by a scalar.",
                                    operands = "predicate, captures...", results = "results...";
  static constexpr std::string_view doc =
      "results = predicate != 0 ? then_body(captures) : else_body(captures). Only the taken body runs, "
      "forward and in "
      "the gradient. Both bodies take all captures and return equal types";
  struct Attrs {
    GraphRef then_body, else_body;
    static constexpr auto fields() {
      return std::tuple{field("then_body", &Attrs::then_body, "runs when the predicate is not 0"),
                        field("else_body", &Attrs::else_body, "runs when the predicate is 0")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Exprs if_else(Expr predicate, const Exprs& captures, Graph then_body, Graph else_body);

}  // namespace rlx::ops
