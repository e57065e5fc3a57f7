// Bodies of codes: products, convolutions and pools of 8-bit codes.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::cpu {

void add_conv_codes(backend::KernelTable&);

}  // namespace rlx::cpu
