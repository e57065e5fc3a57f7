// The product of all other elements: the derivative of a product.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

/// For each element, the product over `axes` of all elements but itself:
///   p[i] = (prod of x[j], j < i) * (prod of x[j], j > i)
/// exact with any number of zeros, and made of ordinary operators so that it differentiates again.
Tensor product_others(Tensor x, const std::vector<int>& axes);

}  // namespace rlx::ops
