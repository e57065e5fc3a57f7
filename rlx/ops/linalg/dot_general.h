// Contraction of two tensors over any axes.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct DotGeneral {
  static constexpr std::string_view name = "dot_general", summary = "Contraction over any axes, batched.",
                                    operands = "lhs, rhs";
  static constexpr std::string_view doc =
      "y[batch, lhs free, rhs free] = sum over the contracted axes of lhs * rhs. Batch and contracted axes "
      "are paired in the order listed; free axes are all others, ascending. Types as for matmul";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::vector<int> lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
    static constexpr auto fields() {
      return std::tuple{field("lhs_contracting", &Attrs::lhs_contracting, "axes of lhs to sum over"),
                        field("rhs_contracting", &Attrs::rhs_contracting, "axes of rhs they are paired with"),
                        field("lhs_batch", &Attrs::lhs_batch, "axes of lhs that stay, in front"),
                        field("rhs_batch", &Attrs::rhs_batch, "axes of rhs they are paired with")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr dot_general(Expr lhs, Expr rhs, DotGeneral::Attrs attrs);

/// The element type of a product: i8 and u8 accumulate and return i32, all others keep theirs.
DType product_dtype(DType operand);
/// Refuses operands whose product is not defined: dtypes differ (i8 and u8 may mix) or are not numeric.
void require_product(Infer& c);

}  // namespace rlx::ops
