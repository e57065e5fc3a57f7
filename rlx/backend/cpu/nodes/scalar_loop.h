// Loops over single numbers.
#pragma once

#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

/// In front of the loops of every host backend, which run any body.
void add_scalar_loops(KernelTable&);

}  // namespace rlx::cpu
