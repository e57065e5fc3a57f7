// The leading axes of a product of two operands, for whoever runs products.
#pragma once

#include "rlx/backend/kernel.h"

namespace rlx::backend {

struct BatchAxis {
  int64_t size, a, b, c;  // strides in elements
};

/// The leading axes of c = a b, those of a and b broadcast to them, joined where the strides allow it; the innermost
/// comes first.
std::vector<BatchAxis> batch_axes(const Arg& a, const Arg& b, const Arg& c);

}  // namespace rlx::backend
