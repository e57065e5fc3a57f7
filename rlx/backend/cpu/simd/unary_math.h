// The functions of cpu::Unary as templates over the enumerator, on vectors of f32 and f64.
#pragma once

#include "rlx/backend/cpu/kernels/unary.h"
#include "rlx/backend/cpu/simd/math_f64.h"
#include "rlx/backend/cpu/simd/sin_cos.h"

namespace rlx::cpu::RLX_ISA {

template <Unary op, class V>
RLX_INLINE V apply(V x) {
  const V zero = {}, one = zero + 1;
  if constexpr (op == Unary::identity) return x;
  if constexpr (op == Unary::neg) return -x;
  if constexpr (op == Unary::abs) return abs(x);
  if constexpr (op == Unary::square) return x * x;
  if constexpr (op == Unary::sqrt) return sqrt(x);
  if constexpr (op == Unary::rsqrt) return one / sqrt(x);
  if constexpr (op == Unary::reciprocal) return one / x;
  if constexpr (op == Unary::exp) return exp(x);
  if constexpr (op == Unary::expm1) return expm1(x);
  if constexpr (op == Unary::log) return log(x);
  if constexpr (op == Unary::log1p) return log1p(x);
  if constexpr (op == Unary::sin) return sin(x);
  if constexpr (op == Unary::cos) return cos(x);
  if constexpr (op == Unary::tanh) return tanh(x);
  if constexpr (op == Unary::sigmoid) return sigmoid(x);
  if constexpr (op == Unary::erf) return erf(x);
  if constexpr (op == Unary::relu) return max(zero, x);
  if constexpr (op == Unary::silu) return silu(x);
  if constexpr (op == Unary::gelu) return gelu(x);
  if constexpr (op == Unary::gelu_tanh) return gelu_tanh(x);
  if constexpr (op == Unary::gelu_quick) return gelu_quick(x);
  if constexpr (op == Unary::softplus) return softplus(x);
  if constexpr (op == Unary::tan) return tan(x);
  if constexpr (op == Unary::atan) return atan(x);
  if constexpr (op == Unary::floor) return floor(x);
  if constexpr (op == Unary::ceil) return ceil(x);
  if constexpr (op == Unary::round) return round_even(x);
  if constexpr (op == Unary::sign) return sign(x);
}

}  // namespace rlx::cpu::RLX_ISA
