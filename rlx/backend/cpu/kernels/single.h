// The elementwise functions on one number: the bits of a lane of their vector forms.
#pragma once

#include "rlx/backend/cpu/kernels/unary.h"

namespace rlx::cpu {

/// What a level provides.
struct SingleKernels {
  float (*f32[kUnaryCount])(float);
  double (*f64[kUnaryCount])(double);
  float (*power_f32)(float, float);
  double (*power_f64)(double, double);
};

}  // namespace rlx::cpu
