// How sums of codes become codes again.
#pragma once

#include "rlx/backend/cpu/kernels/gemm_int8.h"
#include "rlx/ops/quant/q_matmul.h"

namespace rlx::cpu {

/// Without the multipliers of channels, which whoever runs the product keeps.
inline Requantize requantize_of(const ops::Requantize& a) {
  return {.multiplier = a.mult,
          .zero_point = int32_t(a.out_zp),
          .half_away = a.rounding == ops::Rounding::half_away};
}

}  // namespace rlx::cpu
