// The head that guesses the token behind the next: one more layer over what the model made of a token, beside the token that
// follows it.
//
//   x = (norm(embedding of token i + 1), norm(hidden state of token i)) W;   x = layer(x);   logits of token i + 2 = norm(x) Wo
//
// The hidden state is what the head of logits reads, behind the last norm; a further guess takes norm(x) for it.
#pragma once

#include "rlx/models/net.h"

namespace rlx::models {

/// Weights "draft_in", "draft_embed_norm", "draft_hidden_norm"; the model's embeddings where there is no "draft_embed".
Tensor draft_input(Net&);
/// The model's norm where there is no "draft_norm", its head where there is no "draft_head".
void finish_draft(Net&, const Tensor& x);

}  // namespace rlx::models
