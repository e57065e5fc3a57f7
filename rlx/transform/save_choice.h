// Which forward values cross into the backward part.
#pragma once

#include <optional>

#include "rlx/transform/partition.h"

namespace rlx::transform {

/// A subset of forward values from which, with the leaves, all of `needed` can be computed. Every value of
/// `needed` and of the result is a result of a node that is neither a leaf nor a constant.
Values choose_saved(const Graph& joint, const Values& needed, SavePolicy policy,
                    std::optional<int64_t> budget);

}  // namespace rlx::transform
