// Regions that other families make.
#pragma once

#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/region/region.h"

namespace rlx::cuda {

/// A step that runs a region; its arguments are the operands, then the results of the request.
std::unique_ptr<Step> region_step(const Request&, region::Region);

}  // namespace rlx::cuda
