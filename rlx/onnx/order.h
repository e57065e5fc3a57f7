// The order of nodes: ONNX asks for one in which names are made before they are used, and not every writer keeps to it.
#pragma once

#include <vector>

#include "rlx/io/onnx/model.h"

namespace rlx::onnx {

/// Places of nodes in an order in which each stands behind those that make what it or its bodies use; as far as possible, the
/// order they have, and all of it where some need each other.
std::vector<size_t> order_of(const std::vector<io::onnx::Node>&);

}  // namespace rlx::onnx
