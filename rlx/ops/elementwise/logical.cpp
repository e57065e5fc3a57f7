#include "rlx/ops/elementwise/logical.h"

namespace rlx::ops {
namespace detail {

Shapes infer_logical(Infer& c) {
  for (int i = 0; i < c.count(); ++i) {
    if (c.in(i).dtype() != DType::bool_)
      c.fail(c.operand_name(i), ": ", c.in(i), " has dtype ", c.in(i).dtype(),
             "; it must be bool; compare it with 0");
  }
  if (c.count() == 1) return {c.in(0)};
  return {Shape(DType::bool_, c.broadcast(c.in(0), c.in(1)))};
}

Shapes infer_shift(Infer& c) {
  c.same_dtype({0, 1});
  if (!is_integer(c.in(0).dtype())) c.fail("operands have dtype ", c.in(0).dtype(), "; it takes integers");
  return {Shape(c.in(0).dtype(), c.broadcast(c.in(0), c.in(1)))};
}

std::vector<OpSample<NoAttrs>> logical_samples() {
  return {{{}, {"bool[2,3]", "bool[2,3]"}},
          {{}, {"bool[4,1]", "bool[5]"}},
          {{}, {"bool[]", "bool[7]"}},
          {{}, {"bool[0,3]", "bool[3]"}},
          {{}, {"bool[1]", "bool[1]"}}};
}

std::vector<OpSample<NoAttrs>> shift_samples() {
  return {{{}, {"i32[2,3]", "i32[3] <32"}},  {{}, {"u32[4,1] <9", "u32[5] <40"}},
          {{}, {"i64[]", "i64[7] <70"}},     {{}, {"i8[0,3]", "i8[3] <8"}},
          {{}, {"u8[3] bytes", "u8[1] <8"}}, {{}, {"i16[1]", "i16[1] in -3..20"}}};
}

}  // namespace detail

namespace {

template <class F>
Literals map_integers(const Eval& c, F f) {
  auto v = c.in(0).to_integers();
  for (int64_t& i : v) i = f(i);
  return {Literal::integers(c.out(), v)};
}

}  // namespace

Shapes LogicalNot::infer(Infer& c, Attrs&) { return detail::infer_logical(c); }
Literals LogicalNot::reference(const Eval& c, const Attrs&) {
  return map_integers(c, [](int64_t i) { return int64_t(i == 0); });
}
std::vector<OpSample<NoAttrs>> LogicalNot::samples() {
  return {{{}, {"bool[2,3]"}}, {{}, {"bool[]"}}, {{}, {"bool[0]"}}, {{}, {"bool[1]"}}, {{}, {"bool[7]"}}};
}

Shapes BitwiseNot::infer(Infer& c, Attrs&) {
  const DType t = c.in(0).dtype();
  if (!is_integer(t) && t != DType::bool_)
    c.fail("x: ", c.in(0), " has dtype ", t, "; it takes integers and booleans");
  return {c.in(0)};
}
Literals BitwiseNot::reference(const Eval& c, const Attrs&) {
  const bool boolean = c.out().dtype() == DType::bool_;
  return map_integers(c, [boolean](int64_t i) { return boolean ? int64_t(i == 0) : ~i; });
}
std::vector<OpSample<NoAttrs>> BitwiseNot::samples() {
  return {{{}, {"i32[2,3]"}}, {{}, {"u8[5] bytes"}}, {{}, {"bool[3]"}},
          {{}, {"i64[0]"}},   {{}, {"u32[]"}},       {{}, {"i8[1]"}}};
}

Expr logical_and(Expr a, Expr b) { return make<LogicalAnd>(*a.graph, {}, {a, b}); }
Expr logical_or(Expr a, Expr b) { return make<LogicalOr>(*a.graph, {}, {a, b}); }
Expr logical_xor(Expr a, Expr b) { return make<LogicalXor>(*a.graph, {}, {a, b}); }
Expr logical_not(Expr x) { return make<LogicalNot>(*x.graph, {}, {x}); }
Expr bitwise_and(Expr a, Expr b) { return make<BitwiseAnd>(*a.graph, {}, {a, b}); }
Expr bitwise_or(Expr a, Expr b) { return make<BitwiseOr>(*a.graph, {}, {a, b}); }
Expr bitwise_xor(Expr a, Expr b) { return make<BitwiseXor>(*a.graph, {}, {a, b}); }
Expr bitwise_not(Expr x) { return make<BitwiseNot>(*x.graph, {}, {x}); }
Expr shift_left(Expr a, Expr bits) { return make<ShiftLeft>(*a.graph, {}, {a, bits}); }
Expr shift_right(Expr a, Expr bits) { return make<ShiftRight>(*a.graph, {}, {a, bits}); }

}  // namespace rlx::ops
