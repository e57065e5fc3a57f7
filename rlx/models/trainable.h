// The product with packed weights when it is trained through.
#pragma once

#include "rlx/lang/tensor.h"
#include "rlx/ops/quant/dequant_matmul.h"

namespace rlx::models {

/// y = x W^T with W packed, u8 [n, bytes of a row], and dx = dy W. The gradient decodes some rows of W at a time, so a weight is never
/// held in f32 as a whole; W itself has no gradient.
Tensor trainable_product(const Tensor& x, const Tensor& packed, const ops::DequantMatmul::Attrs& how);

}  // namespace rlx::models
