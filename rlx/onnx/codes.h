// Quantised numbers: codes, scales and zero points, as operators of several domains need them.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// The element type a value has in the model.
file::ElementType element_of_item(const Item&);

/// Reals as codes: rounded half to even, moved by the zero point (which may be empty), cut to the range.
Item quantized(const Call&, const Tensor& x, const Tensor& scale, const Tensor& zero, file::ElementType to,
               bool saturate = true);
/// (codes - zero) * scale of operands, f32; scales are one number, one per place of `axis`, or one per block of it.
Tensor dequantized(const Call&, int value, int scale, int zero, int axis = 1, int64_t block = 0);

/// Codes minus their zero point, f64, in which sums of products are exact.
Tensor centred(const Call&, int value, int zero, int axis);
/// A vector along `axis` of tensors of this rank; one element is a scalar.
Tensor along_axis(const Tensor& v, int rank, int axis);

/// Reals as 8-bit codes whose scale and zero point come from the smallest and largest of them.
struct DynamicCodes {
  Tensor codes, scale, zero;  // u8, f32, u8
};
DynamicCodes dynamic_codes(const Tensor& x);

Items quantize_linear(Call&);
Items dequantize_linear(Call&);

}  // namespace rlx::onnx
