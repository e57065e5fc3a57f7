// Regions whose text does not depend on their size: every element lies behind the one before it, in all that is read and written, or is one
// number for all. Many of them may be one launch (nodes/many_regions.cpp).
#pragma once

#include <optional>
#include <string>

#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ir/graph.h"
#include "rlx/region/of_node.h"

namespace rlx::cuda {

struct FlatRegion {
  region::Region region;  // over a box of a size that stands for all
  int64_t count = 0;      // elements of this one
  std::string text;       // of one element; equal for regions that do the same
};

/// Nothing for reductions, for elements in another order and for none at all. Layouts as for region::of_node; results lie row by row.
std::optional<FlatRegion> flat_region(const ir::Node&, std::span<const Shape> types,
                                      std::span<const region::Layout> operands);

}  // namespace rlx::cuda
