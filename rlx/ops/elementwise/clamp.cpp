#include "rlx/ops/elementwise/clamp.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/select.h"

namespace rlx::ops {

Shapes Clamp::infer(Infer& c, Attrs& a) {
  c.require_numeric(0);
  const Shape& x = c.in(0);
  if (is_complex(x.dtype())) c.fail("x: ", x, " is complex and has no order; clamp its parts or its modulus");
  if (!(a.lo <= a.hi)) c.fail("lo is ", a.lo, " and hi is ", a.hi, "; lo must not exceed hi");
  for (const double bound : {a.lo, a.hi}) {
    if (is_integer(x.dtype()) && std::isfinite(bound) && bound != std::trunc(bound))
      c.fail("bound ", bound, " is not a whole number and x: ", x, " is of integers");
  }
  return {x};
}

Literals Clamp::reference(const Eval& c, const Attrs& a) {
  const Literal& x = c.in(0);
  if (is_integer(x.dtype())) {
    const int64_t lo = saturate_to(x.dtype(), a.lo), hi = saturate_to(x.dtype(), a.hi);
    auto v = x.to_integers();
    for (int64_t& i : v) i = std::clamp(i, lo, hi);
    return {Literal::integers(c.out(), v)};
  }
  auto v = x.to_reals();
  for (double& r : v) r = r < a.lo ? a.lo : r > a.hi ? a.hi : r;
  return {Literal::reals(c.out(), v)};
}

namespace {

Expr inside_only(Expr x, Expr t, const Clamp::Attrs& a) {
  const Expr inside = logical_and(compare(CompareOp::ge, x, scalar_like(x, a.lo)),
                                  compare(CompareOp::le, x, scalar_like(x, a.hi)));
  return where(inside, t, scalar_like(t, 0));
}

}  // namespace

Exprs Clamp::vjp(const Vjp& c, const Attrs& a) { return {inside_only(c.in(0), c.dy(), a)}; }
Exprs Clamp::jvp(const Jvp& c, const Attrs& a) { return {inside_only(c.in(0), c.dx(0), a)}; }

std::vector<OpSample<Clamp::Attrs>> Clamp::samples() {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return {{{-0.5, 0.5}, {"f32[2,3]"}},  {{0, 2.75}, {"f64[7] distinct"}},
          {{-kNone, 1}, {"f16[5]"}},    {{0, kNone}, {"f32[0,3]"}},
          {{-2, 2}, {"i32[6]"}},        {{1, 1}, {"f32[1]"}},
          {{-kNone, kNone}, {"f32[]"}}, {{3, 1000}, {"u8[5] bytes"}},
          {{-1, 1}, {"bf16[4]"}},       {{-100, 100}, {"i64[3] <500"}}};
}

Expr clamp(Expr x, double lo, double hi) { return make<Clamp>(*x.graph, {lo, hi}, {x}); }

}  // namespace rlx::ops
