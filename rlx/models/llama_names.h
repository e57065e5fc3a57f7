// Names of weights that the Llama family shares; architectures with other names have a table of their own.
#pragma once

#include "rlx/models/net.h"

namespace rlx::models {

inline constexpr WeightName kLlamaNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@norm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"attn_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"q", "@layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"k", "@layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"v", "@layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"qkv", "@layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"q_norm", "@layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"k_norm", "@layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"ffn_norm", "@layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gate", "@layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "@layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"gate_up", "@layers.{}.mlp.gate_up_proj.weight", ""},
    {"down", "@layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"router", "@layers.{}.mlp.gate.weight|@layers.{}.block_sparse_moe.gate.weight",
     "blk.{}.ffn_gate_inp.weight"},
    {"router_correction", "@layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"expert_gate",
     "@layers.{}.mlp.experts.{e}.gate_proj.weight|@layers.{}.block_sparse_moe.experts.{e}.w1.weight",
     "blk.{}.ffn_gate_exps.weight"},
    {"expert_up",
     "@layers.{}.mlp.experts.{e}.up_proj.weight|@layers.{}.block_sparse_moe.experts.{e}.w3.weight",
     "blk.{}.ffn_up_exps.weight"},
    {"expert_gate_up", "@layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"},
    {"expert_down",
     "@layers.{}.mlp.experts.{e}.down_proj.weight|@layers.{}.block_sparse_moe.experts.{e}.w2.weight|"
     "@layers.{}.mlp.experts.down_proj",
     "blk.{}.ffn_down_exps.weight"},
    {"shared_router", "@layers.{}.mlp.shared_expert_gate.weight", "blk.{}.ffn_gate_inp_shexp.weight"},
    {"shared_gate",
     "@layers.{}.mlp.shared_expert.gate_proj.weight|@layers.{}.mlp.shared_experts.gate_proj.weight",
     "blk.{}.ffn_gate_shexp.weight"},
    {"shared_up", "@layers.{}.mlp.shared_expert.up_proj.weight|@layers.{}.mlp.shared_experts.up_proj.weight",
     "blk.{}.ffn_up_shexp.weight"},
    {"shared_down",
     "@layers.{}.mlp.shared_expert.down_proj.weight|@layers.{}.mlp.shared_experts.down_proj.weight",
     "blk.{}.ffn_down_shexp.weight"},
};

inline constexpr std::string_view kDecoderPrefixes[] = {"model.", "", "model.language_model.",
                                                        "language_model.model."};

}  // namespace rlx::models
