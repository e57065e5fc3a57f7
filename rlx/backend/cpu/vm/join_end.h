// The end of a row program as one instruction.
#pragma once

#include <vector>

#include "rlx/backend/cpu/vm/plan.h"

namespace rlx::cpu::vm {

/// Where code ends in ((x - s) t) w + z put to memory, or in a part of it, its last instructions become one of two places; that one, or
/// null when nothing was changed. Norms end so.
Function join_end(std::vector<Micro>& code, const Functions&, bool wide);

}  // namespace rlx::cpu::vm
