// Comparison of two tensors, with NumPy broadcasting; the result is bool.
#pragma once

#include <array>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

enum class CompareOp { eq, ne, lt, le, gt, ge };
constexpr std::array<std::string_view, 6> choice_names(CompareOp) {
  return {"eq", "ne", "lt", "le", "gt", "ge"};
}

struct Compare {
  static constexpr std::string_view name = "compare";
  static constexpr std::string_view summary = "Comparison of two tensors.";
  static constexpr std::string_view doc =
      "y = a kind b; NaN differs from everything; complex numbers know eq and ne only";
  static constexpr std::string_view operands = "a, b";
  static constexpr Traits traits{.elementwise = true, .zero_gradient = true};
  struct Attrs {
    CompareOp kind = CompareOp::eq;
    static constexpr auto fields() { return std::tuple{field("kind", &Attrs::kind, "which comparison")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr compare(CompareOp kind, Expr a, Expr b);
inline Expr equal(Expr a, Expr b) { return compare(CompareOp::eq, a, b); }
inline Expr less(Expr a, Expr b) { return compare(CompareOp::lt, a, b); }
inline Expr greater(Expr a, Expr b) { return compare(CompareOp::gt, a, b); }

}  // namespace rlx::ops
