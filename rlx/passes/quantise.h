// Graphs in eight bits: roundings put in where calibration says, and products of codes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/rewrite.h"

namespace rlx::passes {

/// How a tensor is rounded to i8: code = round(x / scale) + zero_point, for the whole tensor or for each position along an axis.
struct TensorCode {
  std::optional<int> axis;
  std::vector<double> scales = {1};
  std::vector<int64_t> zero_points = {0};
};

/// The code for values from `low` to `high`, 0 included. Symmetric codes have zero point 0 and use -127 .. 127.
TensorCode symmetric_code(double low, double high);
TensorCode affine_code(double low, double high);

/// Rounds the named values: everybody reads them as they come back from i8, outputs too.
///   y = relu(x); z = add(y, y)   =>   y = dequantize(quantize(relu(x))); z = add(y, y)
/// A name that is no f32 value of one result, a number of scales that does not fit and a scale that is not positive are user errors.
ir::Graph insert_rounding(const ir::Graph&, const std::map<std::string, TensorCode>& taps);

/// Leaves out a fake rounding of what has just been rounded by the same fixed scale, and was only moved or cut off below since then.
///   y = fake_quantize(relu(fake_quantize(x, s)), s)   =>   y = relu(fake_quantize(x, s))
/// The operators between stay. Scales taken from each batch are left alone: the second may differ.
ir::Rewritten merge_roundings(const ir::Graph&);

/// Products of rounded operands whose result is rounded become products of codes, summed in i32.
///   quantize(matmul(dequantize(x), dequantize(w)) + b)   =>   q_matmul(x, w, round(b / (s_x s_w)))
/// Sums of codes are exact, so results may differ by one code from rounded sums of floats.
ir::Rewritten quantise_products(const ir::Graph&);

}  // namespace rlx::passes
