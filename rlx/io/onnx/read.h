// Reading ONNX files: models, and single tensors as the test data of operators has them.
//
// The file is mapped and its tensors are views; lists of numbers are decoded. Nesting is limited, and whatever is not
// well-formed protobuf is a user error that names the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rlx/io/onnx/model.h"

namespace rlx::io::onnx {

inline constexpr int kDeepestNesting = 32;  // graphs in attributes of nodes of graphs ...

Model read_model(const std::string& path);
/// From bytes that `owner` keeps; `path` is for messages and for external data, which lies beside it.
Model parse_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string_view path);

/// A file that holds one TensorProto.
Tensor parse_tensor(std::span<const std::byte> bytes, std::string_view path);

/// Whether bytes look like a model: a ModelProto starts with its IR version.
bool looks_like_model(std::span<const std::byte> head);

}  // namespace rlx::io::onnx
