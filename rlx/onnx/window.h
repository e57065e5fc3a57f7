// Sliding windows as the attributes of convolutions and pools describe them.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// Per spatial axis. `high` is what is added behind as the model says; `round_up` is what a count rounded up reaches
/// beyond that.
struct WindowSpec {
  std::vector<int64_t> kernel, stride, dilation, low, high, round_up;

  bool is_dilated() const;
  bool is_symmetric() const;  // low = high and nothing is rounded up
};

/// Attributes strides, dilations, pads, auto_pad and ceil_mode for an input [N, C, ..].
WindowSpec read_window(const Call&, const Shape& x, std::vector<int64_t> kernel);

/// All windows of the last axes of x, padded with `value`: [.., out 1, .., out n, kernel 1, .., kernel n].
Tensor windows_of(const Call&, const Tensor& x, const WindowSpec&, double value);

}  // namespace rlx::onnx
