#include "rlx/lang/builders/elementwise.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"

namespace rlx {

Value ElementwiseBuilder::add(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::add(t(a), t(b)); });
}

Value ElementwiseBuilder::sub(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::sub(t(a), t(b)); });
}

Value ElementwiseBuilder::mul(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::mul(t(a), t(b)); });
}

Value ElementwiseBuilder::div(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::div(t(a), t(b)); });
}

Value ElementwiseBuilder::max(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::max(t(a), t(b)); });
}

Value ElementwiseBuilder::min(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::min(t(a), t(b)); });
}

Value ElementwiseBuilder::pow(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::pow(t(a), t(b)); });
}

Value ElementwiseBuilder::rem(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::rem(t(a), t(b)); });
}

Value ElementwiseBuilder::binary(ops::BinaryOp op, Value lhs, Value rhs, const Declared& shape,
                                 const Loc& loc) {
  return one(shape, loc, [&] { return ops::binary(op, t(lhs), t(rhs)); });
}

Value ElementwiseBuilder::neg(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::neg(t(x)); });
}

Value ElementwiseBuilder::abs(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::abs(t(x)); });
}

Value ElementwiseBuilder::exp(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::exp(t(x)); });
}

Value ElementwiseBuilder::expm1(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::expm1(t(x)); });
}

Value ElementwiseBuilder::log(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::log(t(x)); });
}

Value ElementwiseBuilder::log1p(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::log1p(t(x)); });
}

Value ElementwiseBuilder::sqrt(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::sqrt(t(x)); });
}

Value ElementwiseBuilder::rsqrt(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::rsqrt(t(x)); });
}

Value ElementwiseBuilder::sin(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::sin(t(x)); });
}

Value ElementwiseBuilder::cos(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cos(t(x)); });
}

Value ElementwiseBuilder::tan(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::tan(t(x)); });
}

Value ElementwiseBuilder::atan(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::atan(t(x)); });
}

Value ElementwiseBuilder::tanh(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::tanh(t(x)); });
}

Value ElementwiseBuilder::erf(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::erf(t(x)); });
}

Value ElementwiseBuilder::floor(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::floor(t(x)); });
}

Value ElementwiseBuilder::ceil(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::ceil(t(x)); });
}

Value ElementwiseBuilder::round(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::round(t(x)); });
}

Value ElementwiseBuilder::sign(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::sign(t(x)); });
}

Value ElementwiseBuilder::square(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::square(t(x)); });
}

Value ElementwiseBuilder::relu(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::relu(t(x)); });
}

Value ElementwiseBuilder::sigmoid(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::sigmoid(t(x)); });
}

Value ElementwiseBuilder::silu(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::silu(t(x)); });
}

Value ElementwiseBuilder::gelu(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::gelu(t(x)); });
}

Value ElementwiseBuilder::gelu_approx(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::gelu_approx(t(x)); });
}

Value ElementwiseBuilder::softplus(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::softplus(t(x)); });
}

Value ElementwiseBuilder::is_nan(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::is_nan(t(x)); });
}

Value ElementwiseBuilder::is_finite(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::is_finite(t(x)); });
}

Value ElementwiseBuilder::stop_gradient(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::stop_gradient(t(x)); });
}

Value ElementwiseBuilder::activation(ops::Activation act, Value input, const Declared& shape,
                                     const Loc& loc) {
  return one(shape, loc, [&] { return ops::activation(act, t(input)); });
}

Value ElementwiseBuilder::clamp(Value x, double lo, double hi, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::clamp(t(x), lo, hi); });
}

Value ElementwiseBuilder::compare(ops::CompareOp op, Value lhs, Value rhs, const Declared& shape,
                                  const Loc& loc) {
  return one(shape, loc, [&] { return ops::compare(op, t(lhs), t(rhs)); });
}

Value ElementwiseBuilder::eq(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::equal(t(a), t(b)); });
}

Value ElementwiseBuilder::lt(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::less(t(a), t(b)); });
}

Value ElementwiseBuilder::gt(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::greater(t(a), t(b)); });
}

Value ElementwiseBuilder::where(Value cond, Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::where(t(cond), t(a), t(b)); });
}

Value ElementwiseBuilder::cast(Value x, DType to, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cast(t(x), to); });
}

Value ElementwiseBuilder::logical_and(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::logical_and(t(a), t(b)); });
}

Value ElementwiseBuilder::logical_or(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::logical_or(t(a), t(b)); });
}

Value ElementwiseBuilder::logical_xor(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::logical_xor(t(a), t(b)); });
}

Value ElementwiseBuilder::logical_not(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::logical_not(t(x)); });
}

Value ElementwiseBuilder::bitwise_and(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::bitwise_and(t(a), t(b)); });
}

Value ElementwiseBuilder::bitwise_or(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::bitwise_or(t(a), t(b)); });
}

Value ElementwiseBuilder::bitwise_xor(Value a, Value b, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::bitwise_xor(t(a), t(b)); });
}

Value ElementwiseBuilder::bitwise_not(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::bitwise_not(t(x)); });
}

Value ElementwiseBuilder::shift_left(Value a, Value bits, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::shift_left(t(a), t(bits)); });
}

Value ElementwiseBuilder::shift_right(Value a, Value bits, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::shift_right(t(a), t(bits)); });
}

Value ElementwiseBuilder::conjugate(Value z, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::conjugate(t(z)); });
}

Value ElementwiseBuilder::complex_norm_sq(Value z, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::complex_norm_sq(t(z)); });
}

Value ElementwiseBuilder::real_part(Value z, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::real_part(t(z)); });
}

Value ElementwiseBuilder::imag_part(Value z, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::imag_part(t(z)); });
}

Value ElementwiseBuilder::make_complex(Value re, Value im, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::make_complex(t(re), t(im)); });
}

}  // namespace rlx
