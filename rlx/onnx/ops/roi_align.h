// Boxes of feature maps, each pooled over a grid of interpolated places.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

Items roi_align(Call&);

}  // namespace rlx::onnx
