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

Tensors finish_vjp(const Vjp& c, Tensor da, Tensor db) {
  return {c.wants(0) && da ? unbroadcast(da, c.in(0).shape().dims()) : Tensor{},
          c.wants(1) && db ? unbroadcast(db, c.in(1).shape().dims()) : Tensor{}};
}

Tensors finish_jvp(const Jvp& c, Tensor dy) { return {dy ? expand(dy, c.out().shape().dims()) : dy}; }

}  // namespace detail

namespace {

// The share of each operand where one of them was picked: 1 if it was, 1/2 on a tie.
Tensor share(Tensor picked, Tensor other, Tensor y) {
  const Tensor half = scalar_like(y, 0.5), one = scalar_like(y, 1), zero = scalar_like(y, 0);
  return where(equal(picked, other), half, where(equal(picked, y), one, zero));
}

Pair pick_gradients(Tensor a, Tensor b, Tensor y, Tensor dy) {
  return {dy * share(a, b, y), dy * share(b, a, y)};
}

Tensor pick_tangent(Tensor a, Tensor b, Tensor y, Tensor da, Tensor db) {
  return add_or(da ? da * share(a, b, y) : da, db ? db * share(b, a, y) : db);
}

}  // namespace

Pair Add::gradients(Tensor, Tensor, Tensor, Tensor dy) { return {dy, dy}; }
Tensor Add::tangent(Tensor, Tensor, Tensor, Tensor da, Tensor db) { return add_or(da, db); }

Pair Sub::gradients(Tensor, Tensor, Tensor, Tensor dy) { return {dy, -dy}; }
Tensor Sub::tangent(Tensor, Tensor, Tensor, Tensor da, Tensor db) { return add_or(da, db ? -db : db); }

Pair Mul::gradients(Tensor a, Tensor b, Tensor, Tensor dy) { return {dy * conj_of(b), dy * conj_of(a)}; }
Tensor Mul::tangent(Tensor a, Tensor b, Tensor, Tensor da, Tensor db) {
  return add_or(da ? da * b : da, db ? a * db : db);
}

Pair Div::gradients(Tensor, Tensor b, Tensor y, Tensor dy) {
  const Tensor da = dy / conj_of(b);
  return {da, -(da * conj_of(y))};
}
Tensor Div::tangent(Tensor, Tensor b, Tensor y, Tensor da, Tensor db) {
  return add_or(da ? da / b : da, db ? -(y * db / b) : db);
}

Pair Max::gradients(Tensor a, Tensor b, Tensor y, Tensor dy) { return pick_gradients(a, b, y, dy); }
Tensor Max::tangent(Tensor a, Tensor b, Tensor y, Tensor da, Tensor db) {
  return pick_tangent(a, b, y, da, db);
}
Pair Min::gradients(Tensor a, Tensor b, Tensor y, Tensor dy) { return pick_gradients(a, b, y, dy); }
Tensor Min::tangent(Tensor a, Tensor b, Tensor y, Tensor da, Tensor db) {
  return pick_tangent(a, b, y, da, db);
}

double Pow::eval(double a, double b) { return std::pow(a, b); }

namespace {

// b a^(b-1), which is 0 for b = 0 even where a = 0.
Tensor pow_by_base(Tensor a, Tensor b) {
  const Tensor zero = scalar_like(b, 0);
  return where(equal(b, zero), zero, b * pow(a, b - 1.0));
}

// y ln a, with the limit 0 at a = 0; the log is kept away from 0 so that no NaN slips through `where`.
Tensor pow_by_exponent(Tensor a, Tensor, Tensor y) {
  const Tensor zero = scalar_like(a, 0), one = scalar_like(a, 1);
  const Tensor at_zero = equal(a, zero);
  return where(at_zero, zero, y * log(where(at_zero, one, a)));
}

}  // namespace

Pair Pow::gradients(Tensor a, Tensor b, Tensor y, Tensor dy) {
  return {dy * pow_by_base(a, b), dy * pow_by_exponent(a, b, y)};
}
Tensor Pow::tangent(Tensor a, Tensor b, Tensor y, Tensor da, Tensor db) {
  return add_or(da ? da * pow_by_base(a, b) : da, db ? db * pow_by_exponent(a, b, y) : db);
}

double Rem::eval(double a, double b) { return std::fmod(a, b); }

namespace {

// trunc(a / b), recovered from the exact remainder: dividing and truncating could miss by one.
Tensor whole_part(Tensor a, Tensor b, Tensor y) { return round((a - y) / b); }

}  // namespace

Pair Rem::gradients(Tensor a, Tensor b, Tensor y, Tensor dy) { return {dy, -(dy * whole_part(a, b, y))}; }
Tensor Rem::tangent(Tensor a, Tensor b, Tensor y, Tensor da, Tensor db) {
  return add_or(da, db ? -(db * whole_part(a, b, y)) : db);
}

Tensor add(Tensor a, Tensor b) { return make<Add>(*a.graph, {}, {a, b}); }
Tensor sub(Tensor a, Tensor b) { return make<Sub>(*a.graph, {}, {a, b}); }
Tensor mul(Tensor a, Tensor b) { return make<Mul>(*a.graph, {}, {a, b}); }
Tensor div(Tensor a, Tensor b) { return make<Div>(*a.graph, {}, {a, b}); }
Tensor max(Tensor a, Tensor b) { return make<Max>(*a.graph, {}, {a, b}); }
Tensor min(Tensor a, Tensor b) { return make<Min>(*a.graph, {}, {a, b}); }
Tensor pow(Tensor a, Tensor b) { return make<Pow>(*a.graph, {}, {a, b}); }
Tensor rem(Tensor a, Tensor b) { return make<Rem>(*a.graph, {}, {a, b}); }

Tensor binary(BinaryOp op, Tensor a, Tensor b) {
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

Tensor scalar_like(Tensor t, double value) { return full(*t.graph, Shape::scalar(t.dtype()), value); }
Tensor operator-(Tensor a) { return neg(a); }

Tensor add_or(Tensor a, Tensor b) {
  if (!a) return b;
  return b ? add(a, b) : a;
}

}  // namespace rlx::ops
