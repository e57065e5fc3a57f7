// The processor of this machine as a backend.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::cpu {

const backend::Backend& device();

}  // namespace rlx::cpu
