// Operators that the target has no kernel for become others that it has.
#pragma once

#include "rlx/ir/rewrite.h"
#include "rlx/ir/target.h"

namespace rlx::passes {

/// Replaces composite operators that no kernel accepts by their decomposition, and again inside it.
///   y = rms_norm(x, gamma, axis=0)   =>   the sums, products and roots it is made of
/// In f16 and bf16 the parts run in f32 and the results are rounded, unless there are products among them. Sizes must be
/// static. Where operands lie is not known yet: kernels are asked with row-major ones. An operator that has no decomposition
/// stays, and runs by its reference rule.
ir::Rewritten legalise(ir::Graph, const ir::Target&);

}  // namespace rlx::passes
