// Sums of products in index notation.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Einsum {
  static constexpr std::string_view name = "einsum", summary = "Sum of products in index notation.",
                                    operands = "first, rest...";
  static constexpr std::string_view doc =
      "`ij,jk->ik`: one letter per axis of each operand; y has the axes behind the arrow, all other letters "
      "are summed. A letter twice in one operand takes its diagonal; `...` stands for any leading or inner "
      "axes, broadcast. Without an arrow y has the letters that occur once, in alphabetical order, behind "
      "`...`. More than two operands are contracted pair by pair, the smallest intermediate first";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::string equation;
    static constexpr auto fields() {
      return std::tuple{field("equation", &Attrs::equation, "letters of each operand and of the result")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr einsum(const std::string& equation, const Exprs& operands);

}  // namespace rlx::ops
