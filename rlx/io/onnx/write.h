// Writing ONNX models.
#pragma once

#include <string>

#include "rlx/io/onnx/model.h"

namespace rlx::io::onnx {

/// The bytes of a model file. Tensors must hold raw contents, or name where they lie outside. Functions without operator
/// sets of their own have those of the model.
std::string model_bytes(const Model&);

}  // namespace rlx::io::onnx
