// Sliding windows as the attributes of convolutions and pools describe them.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// Per spatial axis. `low` and `high` are the padding where it is a number. `before` and `after` come on top of it and may
/// depend on symbols: the padding of auto_pad, and what a count of windows that is rounded up reaches beyond the padding.
struct WindowSpec {
  std::vector<int64_t> kernel, stride, dilation, low, high;
  Dims before, after;

  bool is_dilated() const;
  bool is_extended() const;  // before or after are not 0
};

/// Attributes strides, dilations, pads, auto_pad and ceil_mode for an input [N, C, ..].
WindowSpec read_window(const Call&, const Shape& x, std::vector<int64_t> kernel);

/// x with `value` at the places of `before` and `after`, and those alone.
Tensor extended(const Tensor& x, const WindowSpec&, double value);

/// All windows of the last axes of x, padded with `value`: [.., out 1, .., out n, kernel 1, .., kernel n].
Tensor windows_of(const Call&, const Tensor& x, const WindowSpec&, double value);

/// AveragePool of x, with the attributes of the node.
Tensor average_pooled(const Call&, const Tensor& x);

}  // namespace rlx::onnx
