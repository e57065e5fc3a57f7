// Gradients of attention in its operands, from the saved log-sum-exp.
//
//   p = exp(s - lse)    dp = dy v'    ds = p (dp - delta)    dz = ds (1 - (capped / softcap)^2)
//   dv = p' dy          dk = scale dz' q        dq = scale dz k        dbias = ds, summed where bias repeats
//
// with delta = sum over value_dim of o dy, less the gradient of lse where it has one. Scores are computed
// anew tile by tile; nothing of size q_len * k_len is stored but dbias itself. Results are bit-equal for
// every number of threads.
#pragma once

#include "rlx/backend/cpu/kernels/attention.h"

namespace rlx::cpu {

struct AttentionBackward {
  /// As given to `attention`: `lse` is read, `o` only where delta is null. Keys and values in f32, f16, bf16.
  Attention forward;
  const float* dy = nullptr;
  HeadStrides dy_strides;
  const float* delta = nullptr;  // [batch, q_heads, q_len]; null: from o and dy
  float* dq = nullptr;
  HeadStrides dq_strides;
  float* dk = nullptr;
  HeadStrides dk_strides;
  float* dv = nullptr;
  HeadStrides dv_strides;
  float* dbias = nullptr;  // laid out as bias; null to drop it
};

size_t attention_backward_workspace(const AttentionBackward&, int threads);
void attention_backward(Team, const AttentionBackward&, std::byte* workspace);

// ---- what a level provides ----

struct AttentionBackwardKernels {
  int64_t key_block;  // keys of one task begin on a multiple of it
  size_t (*scratch_bytes)(const AttentionBackward&, int64_t keys);
  /// All queries of one key-value head against its keys [begin, end): writes their rows of dk and dv, adds
  /// to dbias, and writes this part of dq to dq[offset by dq_strides].
  void (*keys)(const AttentionBackward&, int64_t batch, int64_t kv_head, int64_t begin, int64_t end,
               float* dq, const HeadStrides& dq_strides, std::byte* scratch);
};

}  // namespace rlx::cpu
