// Operators that ONNX has no counterpart for, expressed by ones it has: running sums as scans, factorisations column by
// column, random words by integer arithmetic.
#pragma once

#include <map>
#include <string_view>

#include "rlx/ir/graph.h"
#include "rlx/lang/tensor.h"

namespace rlx::onnx {

/// Emits nodes that compute the results of a node on these operands.
using LowerNode = Tensors (*)(const ir::Node&, const Tensors& operands);
/// Null when there is none.
LowerNode find_lowering(std::string_view op);

// Themes, one per file.
const std::map<std::string_view, LowerNode>& sequence_lowerings();
const std::map<std::string_view, LowerNode>& matrix_lowerings();

}  // namespace rlx::onnx
