// What encoders share: every token sees every other, and the results are hidden states.
#pragma once

#include "rlx/models/layers.h"

namespace rlx::models {

/// Attention of packed heads over all tokens that the mask allows; with a window only those at most `reach` places away.
Tensor attend_all(Net&, const Tensor& q, const Tensor& k, const Tensor& v, int64_t reach = -1);
/// The same where heads share keys, or scores have a scale or a cap of their own; the window of `Heads` is not looked at.
Tensor attend_all(Net&, const Tensor& q, const Tensor& k, const Tensor& v, const Heads&, int64_t reach);
/// Outputs last_hidden_state [batch, seq, hidden] and mean_pooled [batch, hidden], the mean over tokens that are no padding.
void finish_encoder(Net&, const Tensor& hidden);
/// Output logits [batch, seq, vocab] where the file has the head for masked words: head_transform, the activation, head_norm, then head, or
/// the table of embeddings where it has none, and head_bias.
void finish_masked_words(Net&, const Tensor& hidden, Activation activation);

}  // namespace rlx::models
