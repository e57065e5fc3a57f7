// Matrix product over the last two axes, with broadcast batch axes.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

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
  static Tensors vjp(const Vjp&, const Attrs&);
  static Tensors jvp(const Jvp&, const Attrs&);
  static Tensors vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Tensor matmul(Tensor lhs, Tensor rhs);

/// The type of `left` times operand i, both with two axes or more and of the dtype of `left`; leading axes
/// broadcast. For every operator that contains a product.
Shape product_shape(Infer& c, const Shape& left, int i);

}  // namespace rlx::ops
