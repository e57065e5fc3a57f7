// Unsigned integers of 64 bits, which are held as the signed ones with the same bits: sums, products and bits are theirs;
// order, quotients and conversions are not.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

bool is_u64(const Item&);

/// Signed numbers in the order that x has unsigned; the same function takes them back.
Tensor in_order(const Tensor& x);
/// x, moved for a comparison if the operands of the node are unsigned.
Tensor comparable(const Call&, const Tensor& x);

Tensor u64_quotient(const Tensor& a, const Tensor& b);
/// Bits moved down, zeros from above.
Tensor u64_shifted_right(const Tensor& x, const Tensor& bits);
Tensor real_of_u64(const Tensor& x, DType to);
/// Cut off towards zero.
Tensor u64_of_real(const Tensor& x);

}  // namespace rlx::onnx
