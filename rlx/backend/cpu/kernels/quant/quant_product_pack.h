// Packing of the codebook formats, for quant_product_pack.cpp.
#pragma once

#include <cstddef>

#include "rlx/backend/cpu/kernels/quant/quant_layout.h"
#include "rlx/quant/grid.h"

namespace rlx::cpu {

/// Between one encoded block and lane `lane` of the block of a group at `group` (quant_layout.h).
void pack_grid_block(const QuantLayout&, const quant::GridFormat&, const std::byte* block, int lanes,
                     int lane, std::byte* group);
void unpack_grid_block(const QuantLayout&, const quant::GridFormat&, const std::byte* group, int lanes,
                       int lane, std::byte* block);

}  // namespace rlx::cpu
