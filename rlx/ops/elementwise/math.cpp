#include "rlx/ops/elementwise/math.h"

#include <cmath>
#include <numbers>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/select.h"

namespace rlx::ops {

double Abs::eval(double x) { return std::fabs(x); }
double Exp::eval(double x) { return std::exp(x); }
std::complex<double> Exp::eval(std::complex<double> x) { return std::exp(x); }
double Expm1::eval(double x) { return std::expm1(x); }
double Log::eval(double x) { return std::log(x); }
std::complex<double> Log::eval(std::complex<double> x) { return std::log(x); }
double Log1p::eval(double x) { return std::log1p(x); }
double Sqrt::eval(double x) { return std::sqrt(x); }
std::complex<double> Sqrt::eval(std::complex<double> x) { return std::sqrt(x); }
double Rsqrt::eval(double x) { return 1 / std::sqrt(x); }
double Sin::eval(double x) { return std::sin(x); }
double Cos::eval(double x) { return std::cos(x); }
double Tan::eval(double x) { return std::tan(x); }
double Atan::eval(double x) { return std::atan(x); }
double Tanh::eval(double x) { return std::tanh(x); }
double Erf::eval(double x) { return std::erf(x); }
double Floor::eval(double x) { return std::floor(x); }
double Ceil::eval(double x) { return std::ceil(x); }
double Round::eval(double x) { return std::nearbyint(x); }  // the default mode rounds halves to even

Expr Neg::derivative(Expr x, Expr) { return scalar_like(x, -1); }
Expr Abs::derivative(Expr x, Expr) { return sign(x); }
Expr Exp::derivative(Expr, Expr y) { return y; }
Expr Expm1::derivative(Expr, Expr y) { return y + 1.0; }
Expr Log::derivative(Expr x, Expr) { return 1.0 / x; }
Expr Log1p::derivative(Expr x, Expr) { return 1.0 / (x + 1.0); }

namespace {

// 0 where x is 0 and `f` of x elsewhere; f never sees the 0, so no infinity meets a zero cotangent.
template <class F>
Expr zero_at_zero(Expr x, F f) {
  const Expr at_zero = equal(x, scalar_like(x, 0));
  return where(at_zero, scalar_like(x, 0), f(where(at_zero, scalar_like(x, 1), x)));
}

}  // namespace

Expr Sqrt::derivative(Expr x, Expr) {
  return zero_at_zero(x, [](Expr safe) { return 0.5 / sqrt(safe); });
}
Expr Rsqrt::derivative(Expr x, Expr) {
  return zero_at_zero(x, [](Expr safe) { return -0.5 * rsqrt(safe) / safe; });
}
Expr Sin::derivative(Expr x, Expr) { return cos(x); }
Expr Cos::derivative(Expr x, Expr) { return -sin(x); }
Expr Tan::derivative(Expr, Expr y) { return 1.0 + y * y; }
// 1 / (1 + x^2), and with r = 1 / x as r^2 / (1 + r^2) where x^2 could overflow.
Expr Atan::derivative(Expr x, Expr) {
  const Expr one = scalar_like(x, 1), far = greater(abs(x), one);
  const Expr r = where(far, 1.0 / where(far, x, one), x), square = r * r;
  return where(far, square, one) / (1.0 + square);
}
Expr Tanh::derivative(Expr, Expr y) { return 1.0 - y * y; }
// Beyond 30 it is 0 in every dtype; so are its own derivatives, which would meet 0 times infinity.
Expr Erf::derivative(Expr x, Expr) {
  const Expr z = clamp(x, -30, 30);
  return 2 * std::numbers::inv_sqrtpi * exp(-(z * z));
}

Expr neg(Expr x) { return make<Neg>(*x.graph, {}, {x}); }
Expr abs(Expr x) { return make<Abs>(*x.graph, {}, {x}); }
Expr exp(Expr x) { return make<Exp>(*x.graph, {}, {x}); }
Expr expm1(Expr x) { return make<Expm1>(*x.graph, {}, {x}); }
Expr log(Expr x) { return make<Log>(*x.graph, {}, {x}); }
Expr log1p(Expr x) { return make<Log1p>(*x.graph, {}, {x}); }
Expr sqrt(Expr x) { return make<Sqrt>(*x.graph, {}, {x}); }
Expr rsqrt(Expr x) { return make<Rsqrt>(*x.graph, {}, {x}); }
Expr sin(Expr x) { return make<Sin>(*x.graph, {}, {x}); }
Expr cos(Expr x) { return make<Cos>(*x.graph, {}, {x}); }
Expr tan(Expr x) { return make<Tan>(*x.graph, {}, {x}); }
Expr atan(Expr x) { return make<Atan>(*x.graph, {}, {x}); }
Expr tanh(Expr x) { return make<Tanh>(*x.graph, {}, {x}); }
Expr erf(Expr x) { return make<Erf>(*x.graph, {}, {x}); }
Expr floor(Expr x) { return make<Floor>(*x.graph, {}, {x}); }
Expr ceil(Expr x) { return make<Ceil>(*x.graph, {}, {x}); }
Expr round(Expr x) { return make<Round>(*x.graph, {}, {x}); }
Expr sign(Expr x) { return make<Sign>(*x.graph, {}, {x}); }
Expr square(Expr x) { return mul(x, x); }

}  // namespace rlx::ops
