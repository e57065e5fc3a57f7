// The product with packed weights when it is trained through.
#pragma once

#include "rlx/lang/tensor.h"
#include "rlx/ops/quant/dequant_matmul.h"

namespace rlx::models {

/// y = x W^T with W packed, u8 [n, bytes of a row], and dx = dy W by the operator that multiplies with W transposed: a weight is never
/// held in f32 as a whole, and both directions read one packed form. W itself has no gradient.
Tensor trainable_product(const Tensor& x, const Tensor& packed, const ops::DequantMatmul::Attrs& how);

}  // namespace rlx::models
