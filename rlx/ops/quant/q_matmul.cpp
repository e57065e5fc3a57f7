#include "rlx/ops/quant/q_matmul.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::ops {

void require_requantize(Infer& c, const Requantize& a) {
  for (const int i : {0, 1}) {
    if (c.in(i).dtype() != DType::i8)
      c.fail(c.operand_name(i), ": ", c.in(i), " has dtype ", c.in(i).dtype(), "; codes are i8");
  }
  if (c.in(2).dtype() != DType::i32 || c.in(2).rank() != 1)
    c.fail("bias: ", c.in(2), " must be i32 of rank 1, one per output channel");
  for (const int64_t zero : {a.x_zp, a.w_zp, a.out_zp}) {
    if (zero < -128 || zero > 127) c.fail("zero point ", zero, " is no i8 code; -128 .. 127");
  }
  if (!(a.mult > 0) || !std::isfinite(a.mult)) c.fail("mult ", a.mult, " must be positive and finite");
}

Expr requantized(Expr acc, const Requantize& a) {
  const Expr v = cast(acc, DType::f64) * a.mult;
  const Expr whole = a.rounding == Rounding::half_even ? round(v) : sign(v) * floor(abs(v) + 0.5);
  return cast(whole + double(a.out_zp), DType::i8);  // the cast saturates
}

int64_t requantized(int64_t acc, const Requantize& a) {
  const double v = double(acc) * a.mult;
  const double whole = a.rounding == Rounding::half_even ? Round::eval(v) : std::round(v);
  return saturate_to(DType::i8, whole + double(a.out_zp));
}

Shapes QMatmul::infer(Infer& c, Attrs& a) {
  require_requantize(c, a);
  c.require_min_rank(0, 2);
  c.require_rank(1, 2);
  const Shape &x = c.in(0), &w = c.in(1), &bias = c.in(2);
  if (decide_equal(x.dim(-1), w.dim(0)) == false)
    c.fail("inner sizes differ, x: ", x, " and w: ", w, "; the last axis of x must equal the first of w");
  c.same(x.dim(-1), w.dim(0), "inner sizes");
  if (decide_equal(bias.dim(0), w.dim(1)) == false) c.fail("bias: ", bias, " does not fit w: ", w);
  c.same(bias.dim(0), w.dim(1), "sizes of bias and w");
  return {x.with_dim(-1, w.dim(1))};
}

Exprs QMatmul::decompose(const Lower& c, const Attrs& a) {
  const auto centred = [&](int i, int64_t zero) { return cast(c.in(i), DType::i32) - double(zero); };
  return {requantized(matmul(centred(0, a.x_zp), centred(1, a.w_zp)) + c.in(2), a)};
}

std::vector<OpSample<QMatmul::Attrs>> QMatmul::samples() {
  return {{{{3, -2, 1, 0.01}}, {"i8[4,9]", "i8[9,5]", "i32[5]"}},
          {{{0, 0, 0, 1}}, {"i8[2,3]", "i8[3,2]", "i32[2]"}},
          {{{-128, 127, -5, 0.5}}, {"i8[1,1]", "i8[1,1]", "i32[1]"}},
          {{{0, 0, 7, 0.1}}, {"i8[0,3]", "i8[3,2]", "i32[2]"}},
          {{{0, 0, 0, 0.5, Rounding::half_away}}, {"i8[2,0]", "i8[0,2]", "i32[2]"}},
          {{{1, 2, 3, 0.25}}, {"i8[2,2,3]", "i8[3,4]", "i32[4]"}}};
}

Expr q_matmul(Expr x, Expr w, Expr bias, int64_t x_zp, int64_t w_zp, int64_t out_zp, double mult,
              Rounding rounding) {
  return make<QMatmul>(*x.graph, {{x_zp, w_zp, out_zp, mult, rounding}}, {x, w, bias});
}

}  // namespace rlx::ops
