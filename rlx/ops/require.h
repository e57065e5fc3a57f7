// Checks that several operators share.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// Operand i must have these extents: decided now, or recorded for binding. `why` ends the message.
void require_dims(ir::Infer& c, int i, const Dims& want, std::string_view why = {});

}  // namespace rlx::ops
