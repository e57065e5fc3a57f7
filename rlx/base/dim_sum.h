// Adding many extents at once, for readers of texts.
#pragma once

#include <vector>

#include "rlx/base/dim.h"

namespace rlx {

struct SignedDim {
  Dim dim;
  bool negative = false;
};
/// The sum, of which only the whole must not be negative. Partial sums do not enter the table of expressions.
Dim sum_of(const std::vector<SignedDim>& terms);

}  // namespace rlx
