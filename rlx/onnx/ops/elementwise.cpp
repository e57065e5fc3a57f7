// Functions of elements with broadcasting: arithmetic, comparison, logic, bits, mathematics.
#include <cmath>
#include <numbers>

#include "rlx/lang/operators.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/unsigned.h"

namespace rlx::onnx {
namespace {

using ops::CompareOp;

Tensor as(const Tensor& t, DType dtype) { return t.dtype() == dtype ? t : t.cast(dtype); }

// The second operand. Before version 7 it may be aligned at an axis of the first instead of at the last.
Tensor second(const Call& c) {
  c.ignore("broadcast"), c.ignore("consumed_inputs");
  const Tensor b = c.in(1);
  if (!c.has_attr("axis") || b.rank() == 0) return b;
  const int rank = c.rank(0), axis = c.axis(c.integer("axis", 0), rank);
  if (axis + b.rank() > rank) throw c.wrong("an operand of ", b.rank(), " axes at axis ", axis, " of ", rank);
  Dims dims = b.shape().dims();
  dims.resize(size_t(rank - axis), 1);
  return b.reshape(dims);
}

template <auto kFunction>
Items binary(Call& c) {
  return {kFunction(c.in(0), second(c), Loc::current())};
}

template <auto kFunction>
Items unary(Call& c) {
  return {kFunction(c.in(0), Loc::current())};
}

template <CompareOp kKind>
Items comparison(Call& c) {
  return {rlx::compare(comparable(c, c.in(0)), comparable(c, second(c)), {.kind = kKind})};
}

Tensor larger_of(const Tensor& a, const Tensor& b, const Loc& loc) { return a.max(b, loc); }
Tensor smaller_of(const Tensor& a, const Tensor& b, const Loc& loc) { return a.min(b, loc); }

Items division(Call& c) {
  if (is_u64(c.item(0))) return {u64_quotient(c.in(0), second(c))};
  return {rlx::div(c.in(0), second(c))};
}

// Of whatever comes, the largest or smallest.
template <auto kFunction>
Items extreme(Call& c) {
  Tensor out = comparable(c, c.in(0));
  for (int i = 1; i < c.count(); ++i) out = kFunction(out, comparable(c, c.in(i)), Loc::current());
  return {comparable(c, out)};
}
Tensor sum_of(const Tensor& a, const Tensor& b, const Loc& loc) { return rlx::add(a, b, loc); }

template <auto kFunction>
Items variadic(Call& c) {
  Tensor out = c.in(0);
  for (int i = 1; i < c.count(); ++i) out = kFunction(out, c.in(i), Loc::current());
  return {out};
}

Items mean(Call& c) {
  Tensor out = c.in(0);
  for (int i = 1; i < c.count(); ++i) out = out + c.in(i);
  return {out / double(c.count())};
}

Items power(Call& c) {
  const Tensor base = c.in(0), exponent = second(c);
  const DType type = base.dtype();
  if (is_float(type)) return {base.pow(as(exponent, type))};
  // Whole numbers are computed in f64 and cut; a power that is one but for the last bits of f64 is that one.
  const Tensor real = rlx::pow(base.cast(DType::f64), as(exponent, DType::f64)), whole = rlx::round(real);
  return {(rlx::abs(real - whole) <= rlx::abs(real) * 1e-12).where(whole, real).cast(type)};
}

Items modulo(Call& c) {
  const Tensor a = c.in(0), b = c.in(1);
  if (is_u64(c.item(0))) {
    c.ignore("fmod");
    return {a - u64_quotient(a, b) * b};
  }
  const Tensor r = rlx::rem(a, b);
  if (c.flag("fmod")) return {r};
  if (a.dtype() == DType::u8 || a.dtype() == DType::u32) return {r};
  // The sign of the divisor: a remainder of the other sign is moved by one divisor.
  const Tensor other = rlx::logical_and(r.ne(0), rlx::logical_xor(r < 0, b < 0));
  return {other.where(r + b, r)};
}

Items shift(Call& c) {
  const std::string direction = c.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    throw c.wrong("direction is '", direction, "'; it must be LEFT or RIGHT");
  if (direction == "RIGHT" && is_u64(c.item(0))) return {u64_shifted_right(c.in(0), c.in(1))};
  return {direction == "LEFT" ? rlx::shift_left(c.in(0), c.in(1)) : rlx::shift_right(c.in(0), c.in(1))};
}

Items where(Call& c) { return {rlx::where(c.in(0), c.in(1), c.in(2))}; }

Items identity(Call& c) {
  c.ignore("consumed_inputs");
  return {c.item(0)};
}

Items reciprocal(Call& c) {
  const Tensor x = c.in(0);
  return {rlx::div(x.ones_like(), x)};
}

Items asin(Call& c) {
  const Tensor x = c.in(0);
  return {rlx::atan(x / rlx::sqrt((1.0 - x) * (1.0 + x)))};
}

Items acos(Call& c) {
  const Tensor x = c.in(0);
  return {2.0 * rlx::atan(rlx::sqrt((1.0 - x) / (1.0 + x)))};
}

// (e^x - e^-x) / 2 from e = e^x - 1, exact near 0.
Items sinh(Call& c) {
  const Tensor e = rlx::expm1(c.in(0));
  return {0.5 * (e + e / (e + 1.0))};
}

Items cosh(Call& c) {
  const Tensor x = c.in(0);
  return {0.5 * (rlx::exp(x) + rlx::exp(-x))};
}

Items asinh(Call& c) {
  const Tensor x = c.in(0), a = rlx::abs(x), square = a * a;
  return {rlx::sign(x) * rlx::log1p(a + square / (1.0 + rlx::sqrt(square + 1.0)))};
}

Items acosh(Call& c) {
  const Tensor x = c.in(0);
  return {rlx::log(x + rlx::sqrt((x - 1.0) * (x + 1.0)))};
}

Items atanh(Call& c) {
  const Tensor x = c.in(0);
  return {0.5 * rlx::log1p(2.0 * x / (1.0 - x))};
}

Items is_inf(Call& c) {
  const Tensor x = c.in(0);
  const bool positive = c.flag("detect_positive", true), negative = c.flag("detect_negative", true);
  const Tensor infinite = rlx::logical_not(rlx::logical_or(rlx::is_finite(x), rlx::is_nan(x)));
  if (positive && negative) return {infinite};
  if (!positive && !negative) return {c.full(x.shape().dims(), DType::bool_, 0)};
  return {rlx::logical_and(infinite, positive ? x > 0 : x < 0)};
}

Items clip(Call& c) {
  Tensor x = c.in(0);
  if (c.opset() < 11) {
    c.ignore("consumed_inputs");
    return {x.clamp(c.real("min", -std::numeric_limits<float>::max()),
                    c.real("max", std::numeric_limits<float>::max()))};
  }
  x = comparable(c, x);
  if (c.has(1)) x = x.max(comparable(c, c.in(1)));
  if (c.has(2)) x = x.min(comparable(c, c.in(2)));
  return {comparable(c, x)};
}

Items absolute(Call& c) {
  const DType t = c.dtype(0);
  if (t == DType::u8 || t == DType::u32 || is_u64(c.item(0))) return {c.item(0)};
  return {rlx::abs(c.in(0))};
}

Items constant(Call& c) {
  for (const char* name : {"value_float", "value_int"}) {
    if (!c.has_attr(name)) continue;
    const bool real = name[6] == 'f';
    return {real ? Literal::scalar(DType::f32, c.real(name, 0))
                 : Literal::of<int64_t>({}, {c.integer(name, 0)})};
  }
  if (c.has_attr("value_ints")) {
    const auto v = c.integers("value_ints");
    return {Literal::of<int64_t>({int64_t(v.size())}, v)};
  }
  if (c.has_attr("value_floats")) {
    const auto v = c.reals("value_floats");
    return {Literal::of<float>({int64_t(v.size())}, v)};
  }
  if (c.has_attr("value_string") || c.has_attr("value_strings")) c.unsupported("a constant of strings");
  if (const file::Attribute* a = c.find("sparse_value"); a != nullptr && a->sparse)
    return {c.literal(*a->sparse)};
  const file::Attribute* a = c.find("value");
  const auto value = c.tensor("value");
  if (!value) throw c.wrong("it has no value");
  Item it(*value);
  it.element = file::ElementType(a->tensor->type);
  return {std::move(it)};
}

constexpr auto kFree = BoundsRule::elementwise;

}  // namespace

std::span<const Entry> elementwise_entries() {
  static const std::vector<Entry> kEntries{
      {"Abs", 1, absolute, kFree},
      {"Acos", 7, acos, kFree},
      {"Acosh", 9, acosh, kFree},
      {"Add", 1, binary<rlx::add>, kFree, follow<plus>, true, true},
      {"And", 1, binary<rlx::logical_and>, kFree},
      {"Asin", 7, asin, kFree},
      {"Asinh", 9, asinh, kFree},
      {"Atan", 7, unary<rlx::atan>, kFree},
      {"Atanh", 9, atanh, kFree},
      {"BitShift", 11, shift, kFree, nullptr, true, true},
      {"BitwiseAnd", 18, binary<rlx::bitwise_and>, kFree},
      {"BitwiseNot", 18, unary<rlx::bitwise_not>, kFree, nullptr, true, true},
      {"BitwiseOr", 18, binary<rlx::bitwise_or>, kFree},
      {"BitwiseXor", 18, binary<rlx::bitwise_xor>, kFree},
      {"Ceil", 1, unary<rlx::ceil>, kFree},
      {"Clip", 1, clip, kFree},
      {"Constant", 1, constant},
      {"Cos", 7, unary<rlx::cos>, kFree},
      {"Cosh", 9, cosh, kFree},
      {"Div", 1, division, kFree, follow<quotient>},
      {"Equal", 1, comparison<CompareOp::eq>, kFree, follow_if<equal>},
      {"Erf", 9, unary<rlx::erf>, kFree},
      {"Exp", 1, unary<rlx::exp>, kFree},
      {"Floor", 1, unary<rlx::floor>, kFree},
      {"Greater", 1, comparison<CompareOp::gt>, kFree},
      {"GreaterOrEqual", 12, comparison<CompareOp::ge>, kFree},
      {"Identity", 1, identity, BoundsRule::by_hand},
      {"IsInf", 10, is_inf, kFree},
      {"IsNaN", 9, unary<rlx::is_nan>, kFree},
      {"Less", 1, comparison<CompareOp::lt>, kFree, follow_if<less>},
      {"LessOrEqual", 12, comparison<CompareOp::le>, kFree},
      {"Log", 1, unary<rlx::log>, kFree},
      {"Max", 1, extreme<larger_of>, kFree, follow<larger>},
      {"Mean", 1, mean, kFree},
      {"Min", 1, extreme<smaller_of>, kFree, follow<smaller>},
      {"Mod", 10, modulo, kFree, follow<remainder>},
      {"Mul", 1, binary<rlx::mul>, kFree, follow<times>, true, true},
      {"Neg", 1, unary<rlx::neg>, kFree},
      {"Not", 1, unary<rlx::logical_not>, kFree},
      {"Or", 1, binary<rlx::logical_or>, kFree},
      {"Pow", 1, power, kFree},
      {"Reciprocal", 1, reciprocal, kFree},
      {"Round", 11, unary<rlx::round>, kFree},
      {"Sign", 9, unary<rlx::sign>, kFree},
      {"Sin", 7, unary<rlx::sin>, kFree},
      {"Sinh", 9, sinh, kFree},
      {"Sqrt", 1, unary<rlx::sqrt>, kFree},
      {"Sub", 1, binary<rlx::sub>, kFree, follow<minus>, true, true},
      {"Sum", 1, variadic<sum_of>, kFree},
      {"Tan", 7, unary<rlx::tan>, kFree},
      {"Where", 9, where, kFree, follow_where},
      {"Xor", 1, binary<rlx::logical_xor>, kFree},
  };
  return kEntries;
}

}  // namespace rlx::onnx
