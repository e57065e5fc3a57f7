// Memory for packed weights.
#pragma once

#include <cstddef>
#include <memory>

namespace rlx::cpu {

/// Memory aligned to 64 bytes, not cleared. Blocks too small for huge pages of their own share regions that have them, side
/// by side in the order they are asked for: a network reads its weights in that order. A region is freed with its last block.
std::shared_ptr<std::byte> allocate_weights(size_t bytes);

}  // namespace rlx::cpu
