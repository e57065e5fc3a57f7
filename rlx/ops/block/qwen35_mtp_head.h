// The multi-token-prediction head of Qwen 3.5 as a block.
#pragma once

#include "rlx/ops/block/block.h"

namespace rlx::ops {

struct Qwen35MtpHead {
  static constexpr std::string_view
      name = "qwen35_mtp_head",
      summary = "Multi-token-prediction head of Qwen 3.5 (block).",
      operands =
          "h_pre_norm, input_ids, cos, sin, last_token_idx, embed_w, hnorm_w, hnorm_b, enorm_w, enorm_b, "
          "eh_w, attn_norm_w, attn_norm_b, q_gate_w, k_w, v_w, q_norm_w, q_norm_b, k_norm_w, k_norm_b, o_w, "
          "post_norm_w, post_norm_b, up_w, gate_w, down_w, head_norm_w, head_norm_b, lm_head_w";
  static constexpr std::string_view doc =
      "h_pre_norm is [batch, seq, n_embd], input_ids [batch, seq], last_token_idx a scalar or [batch]. c = "
      "[rms_norm(embed_w[ids]), rms_norm(h)] eh_w; n = rms_norm(c); n q_gate_w holds per head head_dim lanes "
      "of q, then head_dim lanes of a gate; q and k are normed per head and their first n_rot lanes rotated; "
      "c = c + (attention(q, k, v) * sigmoid(gate)) o_w; c = c + swiglu(rms_norm(c)); y = rms_norm(c[:, "
      "last_token_idx]) lm_head_w, [batch, 1, vocab]";
  static constexpr Traits traits{.contraction = true, .block = true};
  struct Attrs {
    int64_t num_heads = 1;
    int64_t num_kv_heads = 0;
    int64_t head_dim = 1;
    int64_t n_rot = 0;
    int64_t n_embd = 0;
    int64_t n_ff = 0;
    int64_t mtp_vocab = 0;
    double eps = 1e-6;
    static constexpr auto fields() {
      return std::tuple{
          field("num_heads", &Attrs::num_heads, "heads of q"),
          field("num_kv_heads", &Attrs::num_kv_heads, "heads of k and v; 0 means num_heads"),
          field("head_dim", &Attrs::head_dim, "width of a head, even"),
          field("n_rot", &Attrs::n_rot, "rotated lanes of a head; 0 means head_dim"),
          field("n_embd", &Attrs::n_embd, "width of h_pre_norm; 0 reads it from there, another must agree"),
          field("n_ff", &Attrs::n_ff, "columns of up_w; 0 reads it from there, another must agree"),
          field("mtp_vocab", &Attrs::mtp_vocab,
                "columns of lm_head_w; 0 reads it from there, another must agree"),
          field("eps", &Attrs::eps, "of all norms")};
    }
  };
  static Shapes infer(Infer& c, Attrs& a);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
