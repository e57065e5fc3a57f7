// Batched control flow: bodies that run on a batch of which only some rows take part.
//
// A row that is done, or that takes the other side of a branch, is dead: its operands may be such that an
// operator of the body refuses them, or has no finite derivative there. Dead rows are therefore fed with the
// operands of the first live row, held constant for derivatives, and what comes out of them is dropped. The
// body then meets only operands that it would meet without the batch, whatever operators it holds.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// A body on a batch; outputs that do not depend on it stay shared.
struct BatchedBody {
  GraphRef body;
  std::vector<bool> batched;  // per output
};
BatchedBody batch_body(const Vmap& c, const Graph& body, const std::vector<bool>& batched_leaves);
/// The body with these outputs copied along the batch where they were shared.
GraphRef with_batched_outputs(const BatchedBody& body, const std::vector<bool>& wanted, Dim size);

/// Per row, whether all elements of flags[B, ...] are not 0: bool[B].
Expr live_rows(Expr flags);
/// The rows of `yes` where live[B], else those of `no`; each is [B, ...].
Exprs choose_rows(Expr live, const Exprs& yes, const Exprs& no);
/// Values with the dead rows of the batched ones replaced by the first live row. At least one row must be
/// live.
Exprs feed_dead_rows(Expr live, const Exprs& values, const std::vector<bool>& batched);

/// Zeros of these types.
Exprs zeros_of(Graph& g, const Shapes& shapes);

}  // namespace rlx::ops
