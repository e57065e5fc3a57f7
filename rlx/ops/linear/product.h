// The type of a matrix product, for composites that contain one.
#pragma once

#include "rlx/ir/op_def.h"

namespace rlx::ops {

using namespace ir;  // NOLINT

/// The type of `left` times operand i, both with two axes or more; leading axes broadcast.
Shape product_shape(Infer& c, const Shape& left, int i);

}  // namespace rlx::ops
