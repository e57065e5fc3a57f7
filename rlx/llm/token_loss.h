// What a text costs a model, -ln p(target) of each token, with the logits of some tokens at a time: those of all tokens would be
// the largest tensor of a training step.
#pragma once

#include <optional>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"

namespace rlx::llm {

/// The part of a model's graph between its outputs `hidden` and `logits`, as a graph: hidden [batch, seq, n] -> logits, with the params it
/// reads. None where logits depend on anything else.
std::optional<Graph> head_of(const Graph& model);

/// -ln p(targets[i]) for the rows of hidden [n, size], static; targets i32 [n]. Params of the head become params of the graph of
/// `hidden` where it lacks them. With `trainable` there is a gradient by `hidden`, made along with the losses and kept in
/// their place: it is linear in what comes from above, row by row.
/// Tokens are taken together whose logits have at most about `logit_bytes`.
Tensor token_losses(const Graph& head, const Tensor& hidden, const Tensor& targets, bool trainable,
                    int64_t logit_bytes = int64_t(32) << 20);

}  // namespace rlx::llm
