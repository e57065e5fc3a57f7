// What the elementwise functions should give, in a wider type, and how far a result is from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/backend/cpu/kernels/unary.h"

namespace rlx::cpu::test {

template <class Real>
Real true_sigmoid(Real x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

template <class Real>
Real true_unary(Unary op, Real x) {
  constexpr Real kRootHalf = 0.707106781186547524400844362104849039L;
  constexpr Real kTwoRootTwoOverPi = 1.59576912160573071175978423973523L;
  if (x == -std::numeric_limits<Real>::infinity() && op >= Unary::silu && op <= Unary::gelu_quick) return 0;
  switch (op) {
    case Unary::identity:
      return x;
    case Unary::neg:
      return -x;
    case Unary::abs:
      return std::abs(x);
    case Unary::square:
      return x * x;
    case Unary::sqrt:
      return std::sqrt(x);
    case Unary::rsqrt:
      return 1 / std::sqrt(x);
    case Unary::reciprocal:
      return 1 / x;
    case Unary::exp:
      return std::exp(x);
    case Unary::expm1:
      return std::expm1(x);
    case Unary::log:
      return std::log(x);
    case Unary::log1p:
      return std::log1p(x);
    case Unary::sin:
      return std::sin(x);
    case Unary::cos:
      return std::cos(x);
    case Unary::tanh:
      return std::tanh(x);
    case Unary::sigmoid:
      return true_sigmoid(x);
    case Unary::erf:
      return std::erf(x);
    case Unary::relu:
      return std::isnan(x) ? x : std::max(x, Real(0));
    case Unary::silu:
      return x * true_sigmoid(x);
    case Unary::gelu:
      return x / 2 * std::erfc(-x * kRootHalf);
    case Unary::gelu_tanh:
      return x * true_sigmoid(kTwoRootTwoOverPi * (x + Real(0.044715L) * x * x * x));
    case Unary::gelu_quick:
      return x * true_sigmoid(Real(1.702L) * x);
    case Unary::softplus:
      return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x)));
    case Unary::tan:
      return std::tan(x);
    case Unary::atan:
      return std::atan(x);
    case Unary::floor:
      return std::floor(x);
    case Unary::ceil:
      return std::ceil(x);
    case Unary::round:
      return std::nearbyint(x);
    case Unary::sign:
      return std::isnan(x) ? x : Real((x > 0) - (x < 0));
  }
  return 0;
}

/// In units of the last place of the true value, subnormal spacing included.
template <class Got, class Real>
double ulps(Got got, Real want) {
  using Limits = std::numeric_limits<Got>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  const Real overflow = Real(Limits::max()) * (1 + std::ldexp(Real(1), -Limits::digits - 1));
  if (std::abs(want) > overflow) return got == Got(want) ? 0 : INFINITY;
  if (std::isnan(got) || std::isinf(got)) return INFINITY;
  constexpr int least = Limits::min_exponent - 1;
  const int e = want == 0 ? least : std::max(std::ilogb(want), least);
  return double(std::abs(Real(got) - want) / std::ldexp(Real(1), e - Limits::digits + 1));
}

}  // namespace rlx::cpu::test
