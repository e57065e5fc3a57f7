// Checks that several operators share.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// Operand i must have these extents: decided now, or recorded for binding. `why` ends the message.
void require_dims(ir::Infer& c, int i, const Dims& want, std::string_view why = {});

/// `dtype` must hold every position of an axis of this size; a symbolic one is checked when it is bound.
void require_positions(const ir::Infer& c, DType dtype, Dim size);

}  // namespace rlx::ops
