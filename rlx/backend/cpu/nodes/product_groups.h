// Packed products that read the same x, which run as one step (docs/design/016).
#pragma once

#include <vector>

#include "rlx/backend/backend.h"
#include "rlx/backend/node_groups.h"

namespace rlx::cpu {

/// The kind of a group of packed products.
inline constexpr std::string_view kPackedProducts = "packed_products";

std::vector<backend::NodeGroup> product_groups(const ir::Graph&);

/// The kernel of such groups.
void add_product_groups(backend::KernelTable&);

}  // namespace rlx::cpu
