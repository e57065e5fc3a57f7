#include "rlx/ops/elementwise/binary.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/shape/expand.h"

namespace rlx::ops {
namespace detail {

Shapes infer_binary(Infer& c, BinaryDtypes allowed) {
  c.same_dtype({0, 1});
  const DType t = c.in(0).dtype();
  const bool ok = (allowed.floats && is_float(t) && !is_storage_only(t)) ||
                  (allowed.integers && is_integer(t)) || (allowed.complexes && is_complex(t)) ||
                  (allowed.booleans && t == DType::bool_);
  if (!ok) {
    c.fail("operands have dtype ", t, "; it takes ", allowed.floats ? "floats" : "booleans",
           allowed.integers ? ", integers" : "", allowed.complexes ? ", complex numbers" : "");
  }
  return {Shape(t, c.broadcast(c.in(0), c.in(1)))};
}

std::vector<OpSample<NoAttrs>> binary_samples(BinaryDtypes allowed, bool positive) {
  std::vector<OpSample<NoAttrs>> out;
  const std::string fill = positive ? " positive" : "";
  const auto add = [&](std::string t, std::initializer_list<std::pair<const char*, const char*>> shapes) {
    for (const auto& [a, b] : shapes) out.push_back({{}, {t + a + fill, t + b + fill}});
  };
  if (allowed.floats) {
    add("f32", {{"[2,3]", "[2,3]"}, {"[4,1,3]", "[5,1]"}, {"[]", "[7]"}, {"[0,3]", "[1,3]"}, {"[1]", "[1]"}});
    add("f64", {{"[3]", "[2,1]"}});
    add("f16", {{"[2]", "[2]"}});
    add("bf16", {{"[5]", "[]"}});
  }
  if (allowed.integers) {
    add("i32", {{"[3]", "[2,3]"}});
    add("i64", {{"[4]", "[4]"}});
    add("u8", {{"[2]", "[1]"}});
  }
  if (allowed.booleans) add("bool", {{"[2,3]", "[3]"}, {"[0]", "[0]"}, {"[1]", "[]"}});
  if (allowed.complexes) out.push_back({{}, {"c64[2,3]", "c64[3]"}});
  return out;
}

Exprs finish_vjp(const Vjp& c, Expr da, Expr db) {
  return {c.wants(0) && da ? unbroadcast(da, c.in(0).shape().dims()) : Expr{},
          c.wants(1) && db ? unbroadcast(db, c.in(1).shape().dims()) : Expr{}};
}

Exprs finish_jvp(const Jvp& c, Expr dy) { return {dy ? expand(dy, c.out().shape().dims()) : dy}; }

}  // namespace detail

namespace {

// The share of each operand where one of them was picked: 1 if it was, 1/2 on a tie.
Expr share(Expr picked, Expr other, Expr y) {
  const Expr half = scalar_like(y, 0.5), one = scalar_like(y, 1), zero = scalar_like(y, 0);
  return where(equal(picked, other), half, where(equal(picked, y), one, zero));
}

Pair pick_gradients(Expr a, Expr b, Expr y, Expr dy) { return {dy * share(a, b, y), dy * share(b, a, y)}; }

Expr pick_tangent(Expr a, Expr b, Expr y, Expr da, Expr db) {
  return add_or(da ? da * share(a, b, y) : da, db ? db * share(b, a, y) : db);
}

}  // namespace

Pair Add::gradients(Expr, Expr, Expr, Expr dy) { return {dy, dy}; }
Expr Add::tangent(Expr, Expr, Expr, Expr da, Expr db) { return add_or(da, db); }

Pair Sub::gradients(Expr, Expr, Expr, Expr dy) { return {dy, -dy}; }
Expr Sub::tangent(Expr, Expr, Expr, Expr da, Expr db) { return add_or(da, db ? -db : db); }

Pair Mul::gradients(Expr a, Expr b, Expr, Expr dy) { return {dy * conj_of(b), dy * conj_of(a)}; }
Expr Mul::tangent(Expr a, Expr b, Expr, Expr da, Expr db) {
  return add_or(da ? da * b : da, db ? a * db : db);
}

Pair Div::gradients(Expr, Expr b, Expr y, Expr dy) {
  const Expr da = dy / conj_of(b);
  return {da, -(da * conj_of(y))};
}
Expr Div::tangent(Expr, Expr b, Expr y, Expr da, Expr db) {
  return add_or(da ? da / b : da, db ? -(y * db / b) : db);
}

Pair Max::gradients(Expr a, Expr b, Expr y, Expr dy) { return pick_gradients(a, b, y, dy); }
Expr Max::tangent(Expr a, Expr b, Expr y, Expr da, Expr db) { return pick_tangent(a, b, y, da, db); }
Pair Min::gradients(Expr a, Expr b, Expr y, Expr dy) { return pick_gradients(a, b, y, dy); }
Expr Min::tangent(Expr a, Expr b, Expr y, Expr da, Expr db) { return pick_tangent(a, b, y, da, db); }

double Pow::eval(double a, double b) { return std::pow(a, b); }

namespace {

// b a^(b-1), which is 0 for b = 0 even where a = 0.
Expr pow_by_base(Expr a, Expr b) {
  const Expr zero = scalar_like(b, 0);
  return where(equal(b, zero), zero, b * pow(a, b - 1.0));
}

// y ln a, with the limit 0 at a = 0; the log is kept away from 0 so that no NaN slips through `where`.
Expr pow_by_exponent(Expr a, Expr, Expr y) {
  const Expr zero = scalar_like(a, 0), one = scalar_like(a, 1);
  const Expr at_zero = equal(a, zero);
  return where(at_zero, zero, y * log(where(at_zero, one, a)));
}

}  // namespace

Pair Pow::gradients(Expr a, Expr b, Expr y, Expr dy) {
  return {dy * pow_by_base(a, b), dy * pow_by_exponent(a, b, y)};
}
Expr Pow::tangent(Expr a, Expr b, Expr y, Expr da, Expr db) {
  return add_or(da ? da * pow_by_base(a, b) : da, db ? db * pow_by_exponent(a, b, y) : db);
}

double Rem::eval(double a, double b) { return std::fmod(a, b); }

namespace {

// trunc(a / b), recovered from the exact remainder: dividing and truncating could miss by one.
Expr whole_part(Expr a, Expr b, Expr y) { return round((a - y) / b); }

}  // namespace

Pair Rem::gradients(Expr a, Expr b, Expr y, Expr dy) { return {dy, -(dy * whole_part(a, b, y))}; }
Expr Rem::tangent(Expr a, Expr b, Expr y, Expr da, Expr db) {
  return add_or(da, db ? -(db * whole_part(a, b, y)) : db);
}

Expr add(Expr a, Expr b) { return make<Add>(*a.graph, {}, {a, b}); }
Expr sub(Expr a, Expr b) { return make<Sub>(*a.graph, {}, {a, b}); }
Expr mul(Expr a, Expr b) { return make<Mul>(*a.graph, {}, {a, b}); }
Expr div(Expr a, Expr b) { return make<Div>(*a.graph, {}, {a, b}); }
Expr max(Expr a, Expr b) { return make<Max>(*a.graph, {}, {a, b}); }
Expr min(Expr a, Expr b) { return make<Min>(*a.graph, {}, {a, b}); }
Expr pow(Expr a, Expr b) { return make<Pow>(*a.graph, {}, {a, b}); }
Expr rem(Expr a, Expr b) { return make<Rem>(*a.graph, {}, {a, b}); }

Expr binary(BinaryOp op, Expr a, Expr b) {
  switch (op) {
    case BinaryOp::add:
      return add(a, b);
    case BinaryOp::sub:
      return sub(a, b);
    case BinaryOp::mul:
      return mul(a, b);
    case BinaryOp::div:
      return div(a, b);
    case BinaryOp::max:
      return max(a, b);
    case BinaryOp::min:
      return min(a, b);
    case BinaryOp::pow:
      return pow(a, b);
  }
  throw invalid("binary: ", int(op), " is not a binary operator");
}

Expr scalar_like(Expr t, double value) { return full(*t.graph, Shape::scalar(t.dtype()), value); }
Expr operator-(Expr a) { return neg(a); }

Expr add_or(Expr a, Expr b) {
  if (!a) return b;
  return b ? add(a, b) : a;
}

}  // namespace rlx::ops
