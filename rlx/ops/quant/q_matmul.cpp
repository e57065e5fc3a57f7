#include "rlx/ops/quant/q_matmul.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/quantize.h"

namespace rlx::ops {

void require_requantize(Infer& c, const Requantize& a, Dim channels) {
  const DType x = c.in(0).dtype(), w = c.in(1).dtype();
  if (x != DType::i8 && x != DType::u8)
    c.fail(c.operand_name(0), ": ", c.in(0), " has dtype ", x, "; codes are i8 or u8");
  if (w != DType::i8) c.fail(c.operand_name(1), ": ", c.in(1), " has dtype ", w, "; codes of weights are i8");
  if (c.in(2).dtype() != DType::i32 || c.in(2).rank() != 1)
    c.fail("bias: ", c.in(2), " must be i32 of rank 1, one per output channel");
  const auto is_code = [&](int64_t zero, DType codes) {
    const int64_t least = codes == DType::i8 ? -128 : 0;
    if (zero < least || zero > least + 255)
      c.fail("zero point ", zero, " is no ", codes, " code; ", least, " .. ", least + 255);
  };
  is_code(a.x_zp, x);
  is_code(a.w_zp, w);
  is_code(a.out_zp, x);
  const auto positive = [&](std::string_view name, double mult) {
    if (!(mult > 0) || !std::isfinite(mult)) c.fail(name, " ", mult, " must be positive and finite");
  };
  positive("mult", a.mult);
  for (const double mult : a.mults) positive("one of mults,", mult);
  if (a.mults.empty()) return;
  const auto given = Dim(int64_t(a.mults.size()));
  if (decide_equal(given, channels) == false)
    c.fail(given, " mults for ", channels, " output channels; one each expected, or none");
  c.same(given, channels, "mults and output channels");
}

Expr requantized(Expr acc, const Requantize& a, DType codes, int axis) {
  const Expr sum = cast(acc, DType::f64);
  Expr v = sum * a.mult;
  if (!a.mults.empty()) {
    const Dims dims = channel_dims(acc.rank(), axis, int64_t(a.mults.size()));
    v = sum * Expr{acc.graph, acc.graph->constant(Literal::of<double>(dims, a.mults))};
  }
  const Expr whole = a.rounding == Rounding::half_even ? round(v) : sign(v) * floor(abs(v) + 0.5);
  return cast(whole + double(a.out_zp), codes);  // the cast saturates
}

int64_t requantized(int64_t acc, const Requantize& a, DType codes, int64_t channel) {
  const double v = double(acc) * (a.mults.empty() ? a.mult : a.mults[size_t(channel)]);
  const double whole = a.rounding == Rounding::half_even ? Round::eval(v) : std::round(v);
  return saturate_to(codes, whole + double(a.out_zp));
}

Shapes QMatmul::infer(Infer& c, Attrs& a) {
  c.require_min_rank(0, 2);
  c.require_rank(1, 2);
  require_requantize(c, a, c.in(1).dim(1));
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
  return {requantized(matmul(centred(0, a.x_zp), centred(1, a.w_zp)) + c.in(2), a, c.in(0).dtype(),
                      c.out().rank() - 1)};
}

std::vector<OpSample<QMatmul::Attrs>> QMatmul::samples() {
  return {{{{3, -2, 1, 0.01}}, {"i8[4,9]", "i8[9,5]", "i32[5]"}},
          {{{0, 0, 0, 1}}, {"i8[2,3]", "i8[3,2]", "i32[2]"}},
          {{{-128, 127, -5, 0.5}}, {"i8[1,1]", "i8[1,1]", "i32[1]"}},
          {{{0, 0, 7, 0.1}}, {"i8[0,3]", "i8[3,2]", "i32[2]"}},
          {{{0, 0, 0, 0.5, Rounding::half_away}}, {"i8[2,0]", "i8[0,2]", "i32[2]"}},
          {{{1, 2, 3, 0.25}}, {"i8[2,2,3]", "i8[3,4]", "i32[4]"}},
          {{{1, 0, -3, 1, Rounding::half_even, {0.25, 0.01, 3, 0.5}}}, {"i8[5,3]", "i8[3,4]", "i32[4]"}},
          {{{130, 0, 7, 0.02}}, {"u8[3,6]", "i8[6,2]", "i32[2]"}}};
}

Expr q_matmul(Expr x, Expr w, Expr bias, int64_t x_zp, int64_t w_zp, int64_t out_zp, double mult,
              Rounding rounding) {
  return make<QMatmul>(*x.graph, {{x_zp, w_zp, out_zp, mult, rounding}}, {x, w, bias});
}

}  // namespace rlx::ops
