// Elements converted where they lie, without a literal around them.
#pragma once

#include <cstddef>

#include "rlx/base/dtype.h"

namespace rlx {

/// Writes n elements of type `from` as type `to` by the rules of the `cast` operator. Complex elements become bool only.
void cast_elements(DType from, const std::byte* x, DType to, std::byte* y, int64_t n);

}  // namespace rlx
