// Products with ONNX's rules.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// As numpy.matmul: a vector is a row or a column that goes away again. Integers of any width.
Tensor product_of(const Tensor& a, const Tensor& b);

/// The nodes Gemm and Conv, which others contain.
Items gemm(Call&);
Items convolution(Call&);

}  // namespace rlx::onnx
