// The parts that decoders of the Llama family are made of.
#pragma once

#include "rlx/models/net.h"

namespace rlx::models {

/// One attention, for `attend`.
struct Heads {
  int64_t heads = 0, kv_heads = 0, lanes = 0;
  int64_t window = 0;  // tokens that are seen; 0: all before
  double scale = 0;    // 0: 1 / sqrt(lanes)
  double softcap = 0;
};

/// Those of the layer being built.
Heads heads_of(const Net&);
/// The rotary positions of the layer being built: windows may have their own.
const Rope& rope_of(const Net&);

/// Causal attention of q [batch, seq, heads * lanes] over k, v [batch, seq, kv_heads * ..] of these tokens and, with states, of those
/// before them. Of a model that is an encoder, attention over all tokens. Returns [batch, seq, heads * lanes of v].
Tensor attend(Net&, const Tensor& q, const Tensor& k, const Tensor& v, const Heads&);
/// The same where keys, one for all heads, hold their values: rows [batch, seq, lanes], whose first `value_lanes` lanes are the values. Only
/// with states.
Tensor attend_shared(Net&, const Tensor& q, const Tensor& rows, int64_t value_lanes, const Heads&);
/// RMS norm of each head of x [batch, seq, heads * lanes] by itself.
Tensor norm_heads(Net&, std::string_view key, const Tensor& x, int64_t heads);
struct QueryKeyValue {
  Tensor q, k, v;  // [batch, seq, heads * lanes]
};
/// The products before attention: of weights q, k and v, or of one that holds the rows of all.
QueryKeyValue query_key_value(Net&, const Tensor& x);
/// Projections "q", "k", "v" (or "qkv" where the file has that), norms "q_norm" and "k_norm" of heads where there are some, rotary
/// positions, attention, projection "o".
Tensor self_attention(Net&, const Tensor& x);

/// down(activation(gate(x)) * up(x)) with weights "PREFIXgate", "PREFIXup", "PREFIXdown", or "PREFIXgate_up" in one.
Tensor gated_ffn(Net&, const Tensor& x, int64_t width, std::string_view prefix = {});

/// Experts chosen for each token by Config::moe, and the shared ones beside them.
Tensor expert_ffn(Net&, const Tensor& x);
/// Experts in the layers that have them, else gated_ffn.
Tensor feed_forward(Net&, const Tensor& x);

/// The decoder of Llama, whose relatives differ in its parts: x + attention(norm(x)), then x + feed_forward(norm(x)).
void build_llama(Net&);

}  // namespace rlx::models
