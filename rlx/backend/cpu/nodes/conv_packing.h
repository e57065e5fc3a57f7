// Fixed weights of convolutions in f32, in the order that the kernels read.
#pragma once

#include "rlx/backend/cpu/kernels/conv/conv.h"
#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

struct FixedConvWeights {
  std::shared_ptr<const ConvPlan> plan;
  PackedConvWeights packed;
};

/// Of this operand; the form is a FixedConvWeights. `swapped` as in PackedConvWeights::pack.
Packing conv_packing(const std::shared_ptr<const ConvPlan>& plan, int operand, bool swapped = false);

}  // namespace rlx::cpu
