// Copying boxes between tensors, for reference rules.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// For each element of a box of static extents, in row-major order, the row-major position of
/// start + stride * index in a tensor of extents `in`.
std::vector<int64_t> box_positions(const Dims& box, const Dims& in, const std::vector<int64_t>& start,
                                   const std::vector<int64_t>& stride);

/// Element i of the result is element at[i] of x.
Literal pick_elements(const Literal& x, const std::vector<int64_t>& at, const Shape& result);

/// Element i of x goes to element at[i] of y.
void put_elements(const Literal& x, const std::vector<int64_t>& at, Literal& y);

}  // namespace rlx::ops
