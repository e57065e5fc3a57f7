// The functions of cpu::Unary as templates over the enumerator, on vectors.
#pragma once

#include "rlx/backend/cpu/kernels/unary.h"
#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {

template <Unary op>
RLX_INLINE F32 apply(F32 x) {
  if constexpr (op == Unary::identity) return x;
  if constexpr (op == Unary::neg) return -x;
  if constexpr (op == Unary::abs) return abs(x);
  if constexpr (op == Unary::square) return x * x;
  if constexpr (op == Unary::sqrt) return sqrt(x);
  if constexpr (op == Unary::rsqrt) return 1.0f / sqrt(x);
  if constexpr (op == Unary::reciprocal) return 1.0f / x;
  if constexpr (op == Unary::exp) return exp(x);
  if constexpr (op == Unary::expm1) return expm1(x);
  if constexpr (op == Unary::log) return log(x);
  if constexpr (op == Unary::log1p) return log1p(x);
  if constexpr (op == Unary::sin) return sin(x);
  if constexpr (op == Unary::cos) return cos(x);
  if constexpr (op == Unary::tanh) return tanh(x);
  if constexpr (op == Unary::sigmoid) return sigmoid(x);
  if constexpr (op == Unary::erf) return erf(x);
  if constexpr (op == Unary::relu) return max(set1(0.0f), x);
  if constexpr (op == Unary::silu) return silu(x);
  if constexpr (op == Unary::gelu) return gelu(x);
  if constexpr (op == Unary::gelu_tanh) return gelu_tanh(x);
  if constexpr (op == Unary::gelu_quick) return gelu_quick(x);
  if constexpr (op == Unary::softplus) return softplus(x);
}

}  // namespace rlx::cpu::RLX_ISA
