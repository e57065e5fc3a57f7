// Element by element: arithmetic, functions, comparison, choice, conversion.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"

namespace rlx {

/// Element by element.
class ElementwiseBuilder : public BuilderTheme<ElementwiseBuilder> {
 public:
  // Arithmetic; operands broadcast and have one dtype.
  Value add(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value sub(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value mul(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value div(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value max(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value min(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value pow(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// The remainder of a / b, with the sign of a.
  Value rem(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value binary(ops::BinaryOp op, Value lhs, Value rhs, const Declared& shape = {},
               const Loc& loc = Loc::current());

  // Functions of one element.
  Value neg(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value abs(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value exp(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value expm1(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value log(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value log1p(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value sqrt(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rsqrt(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value sin(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value cos(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value tan(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value atan(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value tanh(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value erf(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value floor(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value ceil(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value round(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value sign(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value square(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value relu(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value sigmoid(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value silu(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value gelu(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value gelu_approx(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value softplus(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value is_nan(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value is_finite(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value stop_gradient(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value activation(ops::Activation act, Value input, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  Value clamp(Value x, double lo, double hi, const Declared& shape = {}, const Loc& loc = Loc::current());

  // Comparison and choice; results of comparisons are bool.
  Value compare(ops::CompareOp op, Value lhs, Value rhs, const Declared& shape = {},
                const Loc& loc = Loc::current());
  Value eq(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value lt(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value gt(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value where(Value cond, Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value cast(Value x, DType to, const Declared& shape = {}, const Loc& loc = Loc::current());

  // Booleans and bits.
  Value logical_and(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value logical_or(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value logical_xor(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value logical_not(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value bitwise_and(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value bitwise_or(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value bitwise_xor(Value a, Value b, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value bitwise_not(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value shift_left(Value a, Value bits, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value shift_right(Value a, Value bits, const Declared& shape = {}, const Loc& loc = Loc::current());

  // Complex numbers.
  Value conjugate(Value z, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value complex_norm_sq(Value z, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value real_part(Value z, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value imag_part(Value z, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value make_complex(Value re, Value im, const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
