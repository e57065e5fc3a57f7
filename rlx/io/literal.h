// Between tensors of files and literals of graphs.
#pragma once

#include <string>

#include "rlx/io/tensor_view.h"
#include "rlx/ir/literal.h"

namespace rlx::io {

/// The tensor as a literal. Plain types borrow the file's bytes and keep it mapped; bytes that are not
/// aligned for their type are copied. Block formats are decoded to f32. Types no literal can have, and bool
/// bytes other than 0 and 1, are user errors that name the tensor.
Literal to_literal(const TensorView&);

/// A view of the literal's bytes that keeps them alive.
TensorView to_view(std::string name, const Literal&);

}  // namespace rlx::io
