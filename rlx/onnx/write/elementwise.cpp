// Functions of elements as nodes of ONNX.
#include <cmath>
#include <limits>

#include "rlx/onnx/write/writer.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/compare.h"

namespace rlx::onnx {
namespace {

Names in(const Writer& w, const ir::Node& n) {
  Names out;
  for (const ir::Value v : n.inputs) out.push_back(w.name(v));
  return out;
}

// One node with the operands as they are. The name is that of a literal operator.
template <size_t kSize>
struct Text {
  char text[kSize];
  constexpr Text(const char (&s)[kSize]) {  // NOLINT: written as a literal
    for (size_t i = 0; i < kSize; ++i) text[i] = s[i];
  }
};
template <Text kOp>
Names plain(Writer& w, const ir::Node& n) {
  return {w.node(kOp.text, in(w, n))};
}

DType type_of(const ir::Node& n) { return n.shapes[0].dtype(); }

Names rsqrt(Writer& w, const ir::Node& n) { return {w.node("Reciprocal", {w.node("Sqrt", in(w, n))})}; }
Names silu(Writer& w, const ir::Node& n) {
  const std::string x = w.name(n.inputs[0]);
  return {w.node("Mul", {x, w.node("Sigmoid", {x})})};
}
Names expm1(Writer& w, const ir::Node& n) {
  return {w.node("Sub", {w.node("Exp", in(w, n)), w.scalar(type_of(n), 1)})};
}
Names log1p(Writer& w, const ir::Node& n) {
  return {w.node("Log", {w.node("Add", {w.name(n.inputs[0]), w.scalar(type_of(n), 1)})})};
}
Names gelu(Writer& w, const ir::Node& n) { return {w.node("Gelu", in(w, n))}; }
Names gelu_approx(Writer& w, const ir::Node& n) {
  return {w.node("Gelu", in(w, n), {attribute("approximate", std::string("tanh"))})};
}

// Casts of ours saturate; those of ONNX are left open.
Names cast(Writer& w, const ir::Node& n) {
  const DType from = w.graph().shape(n.inputs[0]).dtype(), to = type_of(n);
  std::string x = w.name(n.inputs[0]);
  if (is_float(from) && (to == DType::i8 || to == DType::u8 || to == DType::i16)) {
    if (from != DType::f32 && from != DType::f64) x = w.cast(x, DType::f32);
    const DType wide = from == DType::f64 ? from : DType::f32;
    const double least = to == DType::i8 ? -128 : to == DType::u8 ? 0 : -32768;
    const double most = to == DType::i8 ? 127 : to == DType::u8 ? 255 : 32767;
    x = w.node("Clip", {x, w.scalar(wide, least), w.scalar(wide, most)});
  }
  return {w.cast(x, to)};
}

// 2^b in the type of a shift, b brought into 0 .. count - 1.
std::string power_of_two(Writer& w, const std::string& bits, DType t, int64_t count) {
  std::vector<int64_t> powers;
  for (int64_t i = 0; i < count; ++i) powers.push_back(int64_t(uint64_t(1) << i));
  const std::string at =
      w.node("Min", {w.node("Max", {bits, w.scalar(t, 0)}), w.scalar(t, double(count - 1))});
  const Literal table = Literal::integers(Shape(t, {count}), powers);
  return w.node("Gather", {w.constant(table), w.cast(at, DType::i64)});
}

std::string between(Writer& w, const std::string& x, DType t, int64_t below) {
  return w.node("And", {w.node("GreaterOrEqual", {x, w.scalar(t, 0)}),
                        w.node("Less", {x, w.scalar(t, double(below))})});
}

// Bits beyond the width shift everything out. Signed integers are multiplied and divided, as ONNX shifts unsigned ones.
template <bool kLeft>
Names shift(Writer& w, const ir::Node& n) {
  const std::string a = w.name(n.inputs[0]), bits = w.name(n.inputs[1]);
  const DType t = type_of(n);
  const int64_t width = int64_t(dtype_size(t)) * 8;
  const std::string zero = w.scalar(t, 0);
  if (t == DType::u8 || t == DType::u32) {
    const std::string most = w.scalar(t, double(width - 1));
    const std::string y = w.node("BitShift", {a, w.node("Min", {bits, most})},
                                 {attribute("direction", std::string(kLeft ? "LEFT" : "RIGHT"))});
    return {w.node("Where", {w.node("LessOrEqual", {bits, most}), y, zero})};
  }
  if (kLeft) {
    const std::string y = w.node("Mul", {a, power_of_two(w, bits, t, width)});
    return {w.node("Where", {between(w, bits, t, width), y, zero})};
  }
  // floor(a / 2^b): the quotient towards zero, one less where something negative is left over.
  const std::string p = power_of_two(w, bits, t, width - 1), q = w.node("Div", {a, p});
  const std::string rest = w.node("Sub", {a, w.node("Mul", {q, p})});
  const std::string y = w.node("Sub", {q, w.cast(w.node("Less", {rest, zero}), t)});
  const std::string sign = w.node("Where", {w.node("Less", {a, zero}), w.scalar(t, -1), zero});
  return {w.node("Where", {between(w, bits, t, width - 1), y, sign})};
}

Names clamp(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Clamp>();
  std::string x = w.name(n.inputs[0]);
  if (std::isfinite(a.lo)) x = w.node("Max", {x, w.scalar(type_of(n), a.lo)});
  if (std::isfinite(a.hi)) x = w.node("Min", {x, w.scalar(type_of(n), a.hi)});
  return {std::isfinite(a.lo) || std::isfinite(a.hi) ? x : w.node("Identity", {x})};
}

Names compare(Writer& w, const ir::Node& n) {
  using ops::CompareOp;
  const Names x = in(w, n);
  switch (n.as<ops::Compare>().kind) {
    case CompareOp::eq:
      return {w.node("Equal", x)};
    case CompareOp::ne:
      return {w.node("Not", {w.node("Equal", x)})};
    case CompareOp::lt:
      return {w.node("Less", x)};
    case CompareOp::le:
      return {w.node("LessOrEqual", x)};
    case CompareOp::gt:
      return {w.node("Greater", x)};
    case CompareOp::ge:
      return {w.node("GreaterOrEqual", x)};
  }
  return {};
}

// A condition that is no bool counts as x != 0.
std::string as_bool(Writer& w, ir::Value v) {
  return w.graph().shape(v).dtype() == DType::bool_ ? w.name(v) : w.cast(w.name(v), DType::bool_);
}

template <Text kOp>
Names logical(Writer& w, const ir::Node& n) {
  Names x;
  for (const ir::Value v : n.inputs) x.push_back(as_bool(w, v));
  return {w.node(kOp.text, x)};
}

Names where(Writer& w, const ir::Node& n) {
  return {w.node("Where", {as_bool(w, n.inputs[0]), w.name(n.inputs[1]), w.name(n.inputs[2])})};
}

Names rem(Writer& w, const ir::Node& n) { return {w.node("Mod", in(w, n), {attribute("fmod", int64_t(1))})}; }

Names is_finite(Writer& w, const ir::Node& n) {
  const Names x = in(w, n);
  return {w.node("Not", {w.node("Or", {w.node("IsInf", x), w.node("IsNaN", x)})})};
}

}  // namespace

const std::map<std::string_view, WriteNode>& elementwise_writers() {
  static const std::map<std::string_view, WriteNode> kWriters{
      {"abs", plain<"Abs">},
      {"add", plain<"Add">},
      {"atan", plain<"Atan">},
      {"bitwise_and", plain<"BitwiseAnd">},
      {"bitwise_not", plain<"BitwiseNot">},
      {"bitwise_or", plain<"BitwiseOr">},
      {"bitwise_xor", plain<"BitwiseXor">},
      {"cast", cast},
      {"ceil", plain<"Ceil">},
      {"clamp", clamp},
      {"compare", compare},
      {"cos", plain<"Cos">},
      {"div", plain<"Div">},
      {"erf", plain<"Erf">},
      {"exp", plain<"Exp">},
      {"expm1", expm1},
      {"floor", plain<"Floor">},
      {"gelu", gelu},
      {"gelu_approx", gelu_approx},
      {"is_finite", is_finite},
      {"is_nan", plain<"IsNaN">},
      {"log", plain<"Log">},
      {"log1p", log1p},
      {"logical_and", logical<"And">},
      {"logical_not", logical<"Not">},
      {"logical_or", logical<"Or">},
      {"logical_xor", logical<"Xor">},
      {"max", plain<"Max">},
      {"min", plain<"Min">},
      {"mul", plain<"Mul">},
      {"neg", plain<"Neg">},
      {"pow", plain<"Pow">},
      {"relu", plain<"Relu">},
      {"rem", rem},
      {"round", plain<"Round">},
      {"rsqrt", rsqrt},
      {"shift_left", shift<true>},
      {"shift_right", shift<false>},
      {"sigmoid", plain<"Sigmoid">},
      {"sign", plain<"Sign">},
      {"silu", silu},
      {"sin", plain<"Sin">},
      {"softplus", plain<"Softplus">},
      {"sqrt", plain<"Sqrt">},
      {"stop_gradient", plain<"Identity">},
      {"sub", plain<"Sub">},
      {"tan", plain<"Tan">},
      {"tanh", plain<"Tanh">},
      {"where", where},
  };
  return kWriters;
}

}  // namespace rlx::onnx
