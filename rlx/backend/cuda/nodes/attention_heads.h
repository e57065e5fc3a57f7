// How attention and its gradients see their tensors of heads, and the text that stands before their kernels.
#pragma once

#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/ops/attention/attention.h"

namespace rlx::cuda {

/// Strides of a tensor of heads, or of scores.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
  bool is_even() const { return batch % 8 == 0 && head % 8 == 0 && row % 8 == 0; }
};

/// As Params of the kernels.
struct AttentionParameters {
  const std::byte *q, *k, *v, *mask, *bias;
  std::byte *o, *lse;
  HeadStrides qs, ks, vs, os, ms, bs;
  int64_t window;
  int q_heads, kv_heads, q_len, k_len, head_dim, value_dim;
  float scale, softcap;
};

/// A tensor of heads: strides and extents.
struct HeadTensor {
  HeadStrides strides;
  int64_t batch = 1, rows = 1, lanes = 1;
};
HeadTensor heads_of(const Arg& x, ops::HeadLayout layout, int64_t heads);

inline int64_t kv_heads_of(const ops::AttentionAttrs& a) {
  return a.num_kv_heads > 0 ? a.num_kv_heads : a.num_heads;
}

/// Operands q, k, v and, from operand `extra` on, mask and bias; addresses and the strides of o are left out.
struct AttentionShape {
  AttentionShape(const Request&, const ops::AttentionAttrs&, int extra);

  AttentionParameters p{};
  int mask = -1, bias = -1;  // operands
  int64_t batch = 1;
  /// Types, sizes of a head rounded up to `unit`, and what masks there are.
  std::string text(const Request&, const ops::AttentionAttrs&, int unit) const;
};

/// What holds for q, k, v, masks and biases of every kernel.
Support accepts_heads(const Request&, const ops::AttentionAttrs&, int extra);

/// Attention as one step. `knows_mask`: behind the operands of the request come the table and the bits of its mask (nodes/masked_attention.cpp).
std::unique_ptr<Step> attention_step(const Request&, bool knows_mask);

void add_attention_backward(KernelTable&);
void add_masked_attention(KernelTable&);

}  // namespace rlx::cuda
