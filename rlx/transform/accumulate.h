// Gradients of one value that come from several readers.
#pragma once

#include "rlx/ir/value.h"

namespace rlx::transform {

/// a + b. Parts of a tensor that were read apart (narrow, split) have gradients with zeros beside them: where no part meets another
/// one, the sum is the parts side by side, with no zeros and no addition.
ir::Expr accumulated(ir::Expr a, ir::Expr b);

}  // namespace rlx::transform
