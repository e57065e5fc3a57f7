// Convolutions with what happens to their results.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::cpu {

void add_fused_conv(backend::KernelTable&);

}  // namespace rlx::cpu
