// The region of one node: of the body of a fused node, or of a single operator.
#pragma once

#include "rlx/region/from_graph.h"

namespace rlx::region {

/// `types` of its operands; layouts as for from_graph.
Built of_node(const ir::Node& node, std::span<const Shape> types, std::span<const Layout> operands,
              std::span<const Layout> results);

}  // namespace rlx::region
