// The number of positions of a sliding window, shared by convolution and pooling.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// floor((in + low + high - window) / stride) + 1. Refuses a window that does not fit, when that is known.
Dim window_positions(const Infer& c, Dim in, int64_t low, int64_t high, int64_t window, int64_t stride);

/// d + offset, where the offset may be negative.
Dim shifted(Dim d, int64_t offset);

/// Brings a list with one entry for each of `axes` spatial axes into full length: empty means `fallback`,
/// one entry is repeated. Refuses entries below `least`.
void complete_list(const Infer& c, std::vector<int64_t>& list, std::string_view name, int axes,
                   int64_t fallback, int64_t least);

}  // namespace rlx::ops
