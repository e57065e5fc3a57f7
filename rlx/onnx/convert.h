// Conversions between element types, with those of ONNX that are held in wider ones.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// x, whose elements are of type `from`, as `to`. `saturate` is for float8: values beyond the range become the largest, else
/// infinite or NaN.
/// `round` is for float8e8m0, the powers of two: up, down or nearest.
Item converted(const Call&, const Tensor& x, file::ElementType from, file::ElementType to, bool saturate,
               std::string_view round = "up");

/// Real numbers rounded to the values of a float type of at most 8 bits that is held in f32.
Tensor rounded_to_codes(const Call&, const Tensor& x, file::ElementType type, bool saturate,
                        std::string_view round = "up");

/// Smallest and largest value of an integer type.
std::pair<double, double> integer_range(file::ElementType);

}  // namespace rlx::onnx
