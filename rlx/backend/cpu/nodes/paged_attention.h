// Attention over pages, and the blocks that keys and values may be kept in.
#pragma once

#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

void add_paged_attention(KernelTable&);

}  // namespace rlx::cpu
