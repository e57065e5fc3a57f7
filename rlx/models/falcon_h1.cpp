// Falcon-H1: in every layer attention and a Mamba 2 layer read the same norm and are added; multipliers on all parts.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/state_space.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@final_layernorm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"mixer_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"q", "@layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"k", "@layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"v", "@layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"ssm_in", "@layers.{}.mamba.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"ssm_conv", "@layers.{}.mamba.conv1d.weight", "blk.{}.ssm_conv1d.weight"},
    {"ssm_dt", "@layers.{}.mamba.dt_bias", "blk.{}.ssm_dt.bias"},
    {"ssm_a", "@layers.{}.mamba.A_log", "blk.{}.ssm_a"},
    {"ssm_d", "@layers.{}.mamba.D", "blk.{}.ssm_d"},
    {"ssm_norm", "@layers.{}.mamba.norm.weight", "blk.{}.ssm_norm.weight"},
    {"ssm_out", "@layers.{}.mamba.out_proj.weight", "blk.{}.ssm_out.weight"},
    {"ffn_norm", "@layers.{}.pre_ff_layernorm.weight", "blk.{}.ffn_norm|blk.{}.ffn_norm.weight"},
    {"gate", "@layers.{}.feed_forward.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "@layers.{}.feed_forward.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"down", "@layers.{}.feed_forward.down_proj.weight", "blk.{}.ffn_down.weight"},
};

// GGUF has them in the weights.
void read_multipliers(ConfigSource& s, Config& c) {
  c.embedding_scale = s.find_real({"embedding_multiplier"}).value_or(1);
  c.logit_scale = s.find_real({"lm_head_multiplier"}).value_or(1);
  c.attention_in = s.find_real({"attention_in_multiplier"}).value_or(1);
  c.attention_out = s.find_real({"attention_out_multiplier"}).value_or(1);
  c.key_scale = s.find_real({"key_multiplier"}).value_or(1);
  c.ssm_in = s.find_real({"ssm_in_multiplier"}).value_or(1);
  c.ssm_out = s.find_real({"ssm_out_multiplier"}).value_or(1);
  c.ssm_scales = s.reals({"ssm_multipliers"});
  if (!c.ssm_scales.empty() && c.ssm_scales.size() != 5)
    throw invalid(s.where(), "ssm_multipliers has ", c.ssm_scales.size(), " entries; 5 expected");
  const auto mlp = s.reals({"mlp_multipliers"});
  if (!mlp.empty() && mlp.size() != 2)
    throw invalid(s.where(), "mlp_multipliers has ", mlp.size(), " entries; 2 expected");
  if (!mlp.empty()) c.gate_scale = mlp[0], c.down_scale = mlp[1];
}

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  read_multipliers(s, c);
  StateSpace& m = c.ssm;
  m.heads = s.integer({"mamba_n_heads", "ssm.time_step_rank"});
  const int64_t expand = s.find_integer({"mamba_expand"}).value_or(2);
  m.inner = s.find_integer({"mamba_d_ssm", "ssm.inner_size"}).value_or(expand * c.hidden);
  if (const auto lanes = s.find_integer({"mamba_d_head"}); lanes && *lanes * m.heads != m.inner)
    throw invalid(s.where(), m.heads, " state-space heads of ", *lanes, " are not ", m.inner);
  m.state = s.integer({"mamba_d_state", "ssm.state_size"});
  m.conv = s.integer({"mamba_d_conv", "ssm.conv_kernel"});
  m.groups = m.norm_groups = s.find_integer({"mamba_n_groups", "ssm.group_count"}).value_or(1);
  m.gated_norm = s.find_flag({"mamba_rms_norm"}).value_or(s.has_tensor("blk.0.ssm_norm.weight"));
  m.norm_before_gate = s.find_flag({"mamba_norm_before_gate"}).value_or(!s.is_gguf());
  if (s.is_gguf()) m.norm_groups = gguf_norm_groups(s);
  check_state_space(s, c);
  if (const auto limit = s.reals({"time_step_limit"}); limit.size() == 2)
    m.dt_low = limit[0], m.dt_high = limit[1];
  s.require_flag({"mamba_use_mlp"}, true);
  s.require_none({"attn_layer_indices"});
  c.mixers.assign(size_t(c.layers), Mixer::both);
}

Tensor falcon_attention(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const int64_t wide = c.heads * c.head_dim, narrow = c.kv_heads * c.head_dim;
  const RopeTables& tables = net.rope(c.rope);
  const Tensor q = turn(net.linear("q", x, wide), tables, c.rope, c.head_dim);
  const Tensor k = turn(net.linear("k", x, narrow) * c.key_scale, tables, c.rope, c.head_dim);
  return net.linear("o", attend(net, q, k, net.linear("v", x, narrow), heads_of(net)), c.hidden);
}

Tensor falcon_ffn(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const Tensor gate = c.activation(net.linear("gate", x, c.intermediate) * c.gate_scale);
  return net.linear("down", net.linear("up", x, c.intermediate) * gate, c.hidden) * c.down_scale;
}

void build(Net& net) {
  const Config& c = net.c;
  Tensor x = net.embed() * c.embedding_scale;
  for (net.layer = 0; net.layer < c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const Tensor h = net.rms_norm("mixer_norm", x);
    x = x + state_space_layer(net, h * c.ssm_in) * c.ssm_out +
        falcon_attention(net, h * c.attention_in) * c.attention_out;
    x = x + falcon_ffn(net, net.rms_norm("ffn_norm", x));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"falcon_h1"}, kGguf[] = {"falcon-h1"}, kPrefixes[] = {"model.", ""},
                           // GGUF has the multipliers in these
    kChanged[] = {"embed", "head", "q", "k", "v", "o", "ssm_in", "ssm_out", "gate", "down"};

}  // namespace

constexpr Architecture kFalconH1{"falcon_h1", kHf,   kGguf, kNames,  kPrefixes,
                                 configure,   build, {},    nullptr, kChanged};

}  // namespace rlx::models
