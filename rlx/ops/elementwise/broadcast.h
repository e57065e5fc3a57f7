// Walking tensors of different extents together, NumPy-style, for reference rules; and its transpose, for
// gradients.
#pragma once

#include <vector>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// Row-major position in an operand for each position in the (static) result it broadcasts to.
std::vector<int64_t> broadcast_positions(const Dims& operand, const Dims& result);

/// Sums `t` over the axes along which an operand of extents `to` was broadcast, so that the result has
/// exactly those extents. The transpose of expand.
Expr unbroadcast(Expr t, const Dims& to);

/// The batching rule of broadcasting operators: batched operands keep the batch as axis 0 and get size-1
/// axes behind it up to the common rank; shared operands stay as they are.
Exprs align_batched(const Vmap& c);

/// Operand i with the batch axis in front, copied along it when it was shared.
Expr lifted(const Vmap& c, int i);
/// Operand i of all examples, one after another along its first axis.
Expr joined(const Vmap& c, int i);

}  // namespace rlx::ops
