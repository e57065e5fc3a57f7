// The judge of regions: plain loops over single numbers, sums in f64.
#pragma once

#include <cstddef>
#include <span>

#include "rlx/region/region.h"

namespace rlx::region {

/// Runs a canonical program on its memory: the inputs, then the results.
void interpret(const Region&, std::span<std::byte* const> arguments);

}  // namespace rlx::region
