// Matrix product over the last two axes, with broadcast batch axes.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// Operations of a product of rows: two for each result and each lane of the first operand.
double product_operations(std::span<const Shape> in, std::span<const Shape> out);

struct Matmul {
  static constexpr std::string_view name = "matmul", summary = "Matrix product, batched.",
                                    operands = "lhs, rhs";
  static constexpr std::string_view doc =
      "y[.., m, n] = sum over k of lhs[.., m, k] rhs[.., k, n]; leading axes broadcast. i8 and u8 operands "
      "accumulate and return i32 (and may be mixed); floats accumulate in f32 or wider";
  static constexpr Traits traits{.contraction = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

Expr matmul(Expr lhs, Expr rhs);

/// The type of `left` times operand i, both with two axes or more and of the dtype of `left`; leading axes
/// broadcast. For every operator that contains a product.
Shape product_shape(Infer& c, const Shape& left, int i);

}  // namespace rlx::ops
