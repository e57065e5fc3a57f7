// Loops and branches as steps, for backends on the host: their bodies are programs of the same backend.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::backend {

void add_control(KernelTable&);

}  // namespace rlx::backend
