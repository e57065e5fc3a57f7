// Memory for the states of one compiled graph: parts of one block that reads as zeros.
//
// The block comes fresh from the system, in huge pages where it is large, and costs nothing before it is touched: compiling a training
// step need not clear the moments of every weight, and a clone that shares its states touches none of its own.
#pragma once

#include <span>
#include <vector>

#include "rlx/runtime/shared_block.h"

namespace rlx::runtime {

/// States of so many bytes each, all zero. On the host they lie in one block, which is freed with the last of them.
std::vector<SharedBlock> cleared_states(const backend::Memory&, std::span<const size_t> bytes);

}  // namespace rlx::runtime
