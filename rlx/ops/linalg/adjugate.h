// The adjugate: the derivative of the determinant.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// adj(a) for each a[.., N, N], with a adj(a) = det(a) 1. Unlike det(a) a^-1 it has a value, and derivatives,
/// for singular matrices too.
Expr adjugate(Expr a);

}  // namespace rlx::ops
