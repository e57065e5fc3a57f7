// Batching: every node is replaced by one that computes all examples at once.
#pragma once

#include "rlx/transform/walk.h"

namespace rlx::transform {

struct BatchedValue {
  Expr tensor;
  bool batched = false;  // carries the batch as axis 0
};

/// Emits into `to` the computation of `from` on leaves that may be batched, and returns its outputs. A node
/// uses, in this order: itself when no operand is batched; its vmap rule; itself on aligned operands when it
/// is elementwise; its decomposition; a scan over the batch.
std::vector<BatchedValue> batch_graph(Graph& to, const Graph& from, const std::vector<BatchedValue>& leaves,
                                      Dim size);

/// The value with the batch as axis 0, copied along it when it was shared.
Expr with_batch(const BatchedValue& v, Dim size);

}  // namespace rlx::transform
