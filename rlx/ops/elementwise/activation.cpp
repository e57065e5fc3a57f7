#include "rlx/ops/elementwise/activation.h"

#include <cmath>
#include <numbers>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"

namespace rlx::ops {
namespace {

constexpr double kCubic = 0.044715;
const double kSqrt2OverPi = std::sqrt(2 * std::numbers::inv_pi);

}  // namespace

double Sigmoid::eval(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double Silu::eval(double x) { return std::isinf(x) && x < 0 ? -0.0 : x * Sigmoid::eval(x); }
double Gelu::eval(double x) {
  if (std::isinf(x) && x < 0) return -0.0;
  return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);  // erfc: no cancellation for x far below 0
}
double GeluApprox::eval(double x) {
  if (std::isinf(x) && x < 0) return -0.0;
  return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x)));
}
double Softplus::eval(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

Expr Relu::derivative(Expr x, Expr) {
  return where(greater(x, scalar_like(x, 0)), scalar_like(x, 1), scalar_like(x, 0));
}
Expr Sigmoid::derivative(Expr, Expr y) { return y * (1.0 - y); }

namespace {

// A long formula in 16 bits would be rounded behind each operator: it is computed in f32 and rounded once.
template <class Formula>
Expr rounded_once(Expr x, Formula formula) {
  const DType t = x.dtype();
  return t == DType::f16 || t == DType::bf16 ? cast(formula(cast(x, DType::f32)), t) : formula(x);
}

}  // namespace

Expr Silu::derivative(Expr given, Expr) {
  return rounded_once(given, [](Expr x) {
    const Expr s = sigmoid(x);
    return s * (1.0 + x * (1.0 - s));
  });
}

// Both derivatives are constant, to the last bit of f64, long before powers of x overflow in f16: they are
// those at the nearest point of a range in which nothing does.
Expr Gelu::derivative(Expr given, Expr) {
  return rounded_once(given, [](Expr x) {
    const Expr z = clamp(x, -40, 40);  // e^-800 is 0
    const Expr cdf = 0.5 * (1.0 + erf(z / std::numbers::sqrt2));
    const Expr density = exp(-0.5 * (z * z)) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return cdf + z * density;
  });
}
Expr GeluApprox::derivative(Expr given, Expr) {
  return rounded_once(given, [](Expr x) {
    const Expr z = clamp(x, -10, 10);  // the sigmoid of 87 is 1, of -87 below 1e-37
    const Expr square = z * z;
    // y = x s(v) with v = 2 sqrt(2/pi) (x + 0.044715 x^3): s + x s (1 - s) v', without the cancellation of 1 + tanh.
    const Expr s = sigmoid(2 * kSqrt2OverPi * (z + kCubic * (square * z)));
    const Expr slope = 2 * kSqrt2OverPi * (1.0 + 3 * kCubic * square);
    return s * (1.0 + z * (1.0 - s) * slope);
  });
}
Expr Softplus::derivative(Expr x, Expr) { return sigmoid(x); }

Expr relu(Expr x) { return make<Relu>(*x.graph, {}, {x}); }
Expr sigmoid(Expr x) { return make<Sigmoid>(*x.graph, {}, {x}); }
Expr silu(Expr x) { return make<Silu>(*x.graph, {}, {x}); }
Expr gelu(Expr x) { return make<Gelu>(*x.graph, {}, {x}); }
Expr gelu_approx(Expr x) { return make<GeluApprox>(*x.graph, {}, {x}); }
Expr softplus(Expr x) { return make<Softplus>(*x.graph, {}, {x}); }

Expr activation(Activation kind, Expr x) {
  // In the order of the enumerators.
  constexpr Expr (*kFunctions[])(Expr) = {gelu,  gelu_approx, silu, relu, sigmoid, tanh, exp,  log,  sqrt,
                                          rsqrt, neg,         abs,  sin,  cos,     tan,  atan, round};
  if (size_t(kind) >= std::size(kFunctions))
    throw invalid("activation: ", int(kind), " is not an activation");
  return kFunctions[size_t(kind)](x);
}

}  // namespace rlx::ops
