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

Names cast(Writer& w, const ir::Node& n) { return {w.cast(w.name(n.inputs[0]), type_of(n))}; }

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
