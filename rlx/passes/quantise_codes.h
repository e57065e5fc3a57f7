// Graphs of rounded values compute on the codes themselves.
#pragma once

#include "rlx/ir/rewrite.h"
#include "rlx/ir/target.h"

namespace rlx::passes {

/// The name of the bodies that join_codes makes: products of codes with what becomes of their sums.
inline constexpr std::string_view kCodesBody = "codes";

/// Products and convolutions of dequantised values become products of their codes, summed exactly, with
/// channels last:
///   quantize(relu(conv2d(dequantize(x), dequantize(w)) + b))
///     =>  y = fused(x, w, s_x s_w / s_y, b / s_y), a body "codes" of codes in and codes out
/// Rounding may be written as arithmetic (round(x / s) + z, clamp, cast) or as quantize and dequantize; scales
/// of weights may come at run time, zero points and the scale of a result are known. Where the result is not
/// rounded, the product gives f32. What only moves or compares values moves their codes:
///   quantize(pool_max(dequantize(x)))  =>  pool_max(x), when both have one scale and zero point
/// Results may differ by one code from rounded sums of floats. Nothing is done for a target that has no kernel
/// for such bodies; without a target, all is done.
ir::Rewritten join_codes(ir::Graph, const ir::Target* = nullptr);

}  // namespace rlx::passes
