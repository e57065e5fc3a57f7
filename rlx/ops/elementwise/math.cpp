#include "rlx/ops/elementwise/math.h"

#include <cmath>
#include <numbers>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
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

Tensor Neg::derivative(Tensor x, Tensor) { return scalar_like(x, -1); }
Tensor Abs::derivative(Tensor x, Tensor) { return sign(x); }
Tensor Exp::derivative(Tensor, Tensor y) { return y; }
Tensor Expm1::derivative(Tensor, Tensor y) { return y + 1.0; }
Tensor Log::derivative(Tensor x, Tensor) { return 1.0 / x; }
Tensor Log1p::derivative(Tensor x, Tensor) { return 1.0 / (x + 1.0); }

namespace {

// 0 where x is 0 and `f` of x elsewhere; f never sees the 0, so no infinity meets a zero cotangent.
template <class F>
Tensor zero_at_zero(Tensor x, F f) {
  const Tensor at_zero = equal(x, scalar_like(x, 0));
  return where(at_zero, scalar_like(x, 0), f(where(at_zero, scalar_like(x, 1), x)));
}

}  // namespace

Tensor Sqrt::derivative(Tensor x, Tensor) {
  return zero_at_zero(x, [](Tensor safe) { return 0.5 / sqrt(safe); });
}
Tensor Rsqrt::derivative(Tensor x, Tensor) {
  return zero_at_zero(x, [](Tensor safe) { return -0.5 * rsqrt(safe) / safe; });
}
Tensor Sin::derivative(Tensor x, Tensor) { return cos(x); }
Tensor Cos::derivative(Tensor x, Tensor) { return -sin(x); }
Tensor Tan::derivative(Tensor, Tensor y) { return 1.0 + y * y; }
Tensor Atan::derivative(Tensor x, Tensor) { return 1.0 / (1.0 + x * x); }
Tensor Tanh::derivative(Tensor, Tensor y) { return 1.0 - y * y; }
Tensor Erf::derivative(Tensor x, Tensor) { return 2 * std::numbers::inv_sqrtpi * exp(-(x * x)); }

Tensor neg(Tensor x) { return make<Neg>(*x.graph, {}, {x}); }
Tensor abs(Tensor x) { return make<Abs>(*x.graph, {}, {x}); }
Tensor exp(Tensor x) { return make<Exp>(*x.graph, {}, {x}); }
Tensor expm1(Tensor x) { return make<Expm1>(*x.graph, {}, {x}); }
Tensor log(Tensor x) { return make<Log>(*x.graph, {}, {x}); }
Tensor log1p(Tensor x) { return make<Log1p>(*x.graph, {}, {x}); }
Tensor sqrt(Tensor x) { return make<Sqrt>(*x.graph, {}, {x}); }
Tensor rsqrt(Tensor x) { return make<Rsqrt>(*x.graph, {}, {x}); }
Tensor sin(Tensor x) { return make<Sin>(*x.graph, {}, {x}); }
Tensor cos(Tensor x) { return make<Cos>(*x.graph, {}, {x}); }
Tensor tan(Tensor x) { return make<Tan>(*x.graph, {}, {x}); }
Tensor atan(Tensor x) { return make<Atan>(*x.graph, {}, {x}); }
Tensor tanh(Tensor x) { return make<Tanh>(*x.graph, {}, {x}); }
Tensor erf(Tensor x) { return make<Erf>(*x.graph, {}, {x}); }
Tensor floor(Tensor x) { return make<Floor>(*x.graph, {}, {x}); }
Tensor ceil(Tensor x) { return make<Ceil>(*x.graph, {}, {x}); }
Tensor round(Tensor x) { return make<Round>(*x.graph, {}, {x}); }
Tensor sign(Tensor x) { return make<Sign>(*x.graph, {}, {x}); }
Tensor square(Tensor x) { return mul(x, x); }

}  // namespace rlx::ops
