// The product of all other elements: the derivative of a product.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// For each element, the product over `axes` of all elements but itself:
///   p[i] = (prod of x[j], j < i) * (prod of x[j], j > i)
/// exact with any number of zeros, and made of ordinary operators so that it differentiates again.
Expr product_others(Expr x, const std::vector<int>& axes);

}  // namespace rlx::ops
