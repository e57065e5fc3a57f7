// Qwen3-Next and Qwen3.5: three layers of the gated delta rule to one of gated attention. A delta layer keeps a matrix for each head
// that forgets by a gate and is corrected towards the values; before it a short causal convolution mixes neighbours.
//
//   q, k, v = silu(conv(x W)),  z = x Wz,  beta = sigmoid(x Wb),  g = -e^A softplus(x Wa + dt)
//   S = e^g S;  S = S + k (beta (v - S^T k))^T;  y = S^T q / sqrt(n);  out = (norm(y) * silu(z)) Wo
#include <algorithm>
#include <cmath>

#include "rlx/lang/functions.h"
#include "rlx/models/architecture.h"
#include "rlx/models/convolution.h"
#include "rlx/models/draft.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"
#include "rlx/models/qwen.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@norm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"attn_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"q", "@layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"k", "@layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"v", "@layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"q_norm", "@layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"k_norm", "@layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"in_qkvz", "@layers.{}.linear_attn.in_proj_qkvz.weight", "blk.{}.ssm_in.weight"},
    {"in_ba", "@layers.{}.linear_attn.in_proj_ba.weight", "blk.{}.ssm_ba.weight"},
    {"in_qkv", "@layers.{}.linear_attn.in_proj_qkv.weight", "blk.{}.attn_qkv.weight"},
    {"in_z", "@layers.{}.linear_attn.in_proj_z.weight", "blk.{}.attn_gate.weight"},
    {"in_b", "@layers.{}.linear_attn.in_proj_b.weight", "blk.{}.ssm_beta.weight"},
    {"in_a", "@layers.{}.linear_attn.in_proj_a.weight", "blk.{}.ssm_alpha.weight"},
    {"conv", "@layers.{}.linear_attn.conv1d.weight", "blk.{}.ssm_conv1d.weight"},
    {"a_log", "@layers.{}.linear_attn.A_log", "blk.{}.ssm_a"},
    {"dt_bias", "@layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias"},
    {"delta_norm", "@layers.{}.linear_attn.norm.weight", "blk.{}.ssm_norm.weight"},
    {"delta_out", "@layers.{}.linear_attn.out_proj.weight", "blk.{}.ssm_out.weight"},
    {"ffn_norm", "@layers.{}.post_attention_layernorm.weight",
     "blk.{}.post_attention_norm.weight|blk.{}.ffn_norm.weight"},
    {"gate", "@layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "@layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"gate_up", ""},
    {"down", "@layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"router", "@layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"router_correction", ""},
    {"expert_gate", "@layers.{}.mlp.experts.{e}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
    {"expert_up", "@layers.{}.mlp.experts.{e}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"expert_gate_up", "@layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"},
    {"expert_down", "@layers.{}.mlp.experts.{e}.down_proj.weight|@layers.{}.mlp.experts.down_proj",
     "blk.{}.ffn_down_exps.weight"},
    {"shared_router", "@layers.{}.mlp.shared_expert_gate.weight", "blk.{}.ffn_gate_inp_shexp.weight"},
    {"shared_gate", "@layers.{}.mlp.shared_expert.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"shared_up", "@layers.{}.mlp.shared_expert.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"shared_down", "@layers.{}.mlp.shared_expert.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"draft_in", "mtp.fc.weight", "blk.{}.nextn.eh_proj.weight"},
    {"draft_embed_norm", "mtp.pre_fc_norm_embedding.weight", "blk.{}.nextn.enorm.weight"},
    {"draft_hidden_norm", "mtp.pre_fc_norm_hidden.weight", "blk.{}.nextn.hnorm.weight"},
    {"draft_norm", "mtp.norm.weight", "blk.{}.nextn.shared_head_norm.weight"},
    {"draft_embed", "", "blk.{}.nextn.embed_tokens.weight"},
    {"draft_head", "", "blk.{}.nextn.shared_head_head.weight"},
};

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.norm_plus_one = true;
  c.draft_layers =
      s.find_integer({"mtp_num_hidden_layers|num_nextn_predict_layers"}).value_or(c.draft_layers);
  s.require_flag({"mtp_use_dedicated_embeddings"}, false);
  s.require_flag({"attn_output_gate"}, true);
  s.require_flag({"use_sliding_window"}, false);
  s.require_text({"mamba_ssm_dtype"}, "float32");
  c.rope = read_rope(s, c, int64_t(double(c.head_dim) * partial_rotary_factor(s)));
  s.integers({"", "rope.dimension_sections"});  // places in a picture: a text has one for all sections
  c.delta = {.key_heads = s.integer({"linear_num_key_heads", "ssm.group_count"}),
             .value_heads = s.integer({"linear_num_value_heads", "ssm.time_step_rank"}),
             .key_lanes = s.integer({"linear_key_head_dim", "ssm.state_size"}),
             .conv = s.integer({"linear_conv_kernel_dim", "ssm.conv_kernel"}),
             .tiled = s.is_gguf() && s.architecture() != "qwen3next"};
  DeltaNet& d = c.delta;
  if (d.key_heads < 1 || d.value_heads < 1 || d.value_heads % d.key_heads != 0)
    throw invalid(s.where(), d.key_heads, " heads of keys do not divide ", d.value_heads, " heads of values");
  d.value_lanes =
      s.is_gguf() ? s.integer({"", "ssm.inner_size"}) / d.value_heads : s.integer({"linear_value_head_dim"});
  const int64_t every = s.find_integer({"full_attention_interval", "full_attention_interval"}).value_or(4);
  read_layer_types(s, c);
  if (s.texts({"layer_types"}).empty()) {
    for (int64_t i = 0; i < c.layers; ++i) {
      if (every <= 0 || (i + 1) % every != 0) c.mixers[size_t(i)] = Mixer::linear;
    }
  }
  read_qwen_experts(s, c);
}

// ---- the delta rule ----

struct DeltaInputs {
  Tensor mixed;    // q, k, v beside each other: [batch, seq, 2 keys + values]
  Tensor z, b, a;  // [batch, seq, values], [batch, seq, value heads]
};

// Columns [start, start + size) of each key head, beside each other. x [batch, seq, key heads * width].
Tensor of_each_head(Net& net, const Tensor& x, int64_t start, int64_t size) {
  const int64_t heads = net.c.delta.key_heads, width = x.dim(2).value() / heads;
  return x.reshape({net.batch, net.seq, heads, width})
      .narrow(3, start, size)
      .reshape({net.batch, net.seq, heads * size});
}

// Qwen3-Next stores the projections by key head: q, k, then v and z of its value heads; b and a of its value heads.
DeltaInputs project(Net& net, const Tensor& x) {
  const DeltaNet& d = net.c.delta;
  const int64_t share = d.value_heads / d.key_heads, values = d.value_heads * d.value_lanes;
  const int64_t keys = d.key_heads * d.key_lanes, v = share * d.value_lanes;
  DeltaInputs in;
  if (net.has("in_qkvz")) {
    const Tensor all = net.linear("in_qkvz", x, 2 * keys + 2 * values);
    in.mixed =
        concat({of_each_head(net, all, 0, d.key_lanes), of_each_head(net, all, d.key_lanes, d.key_lanes),
                of_each_head(net, all, 2 * d.key_lanes, v)},
               {.axis = 2});
    in.z = of_each_head(net, all, 2 * d.key_lanes + v, v);
  } else {
    in.mixed = net.linear("in_qkv", x, 2 * keys + values);
    in.z = net.linear("in_z", x, values);
  }
  if (net.has("in_ba")) {
    const Tensor both = net.linear("in_ba", x, 2 * d.value_heads);
    in.b = of_each_head(net, both, 0, share);
    in.a = of_each_head(net, both, share, share);
  } else {
    in.b = net.linear("in_b", x, d.value_heads);
    in.a = net.linear("in_a", x, d.value_heads);
  }
  return in;
}

// [batch, seq, heads * lanes] as one head for each value head, with `size` lanes.
Tensor spread(Net& net, const Tensor& x, int64_t heads, int64_t lanes, int64_t size) {
  const int64_t share = net.c.delta.value_heads / heads;
  const bool tiled = net.c.delta.tiled;
  const Dims one =
      tiled ? Dims{net.batch, net.seq, 1, heads, lanes} : Dims{net.batch, net.seq, heads, 1, lanes};
  const Dims all =
      tiled ? Dims{net.batch, net.seq, share, heads, lanes} : Dims{net.batch, net.seq, heads, share, lanes};
  const Tensor y = x.reshape(one).expand(all).reshape({net.batch, net.seq, heads * share, lanes});
  return size > lanes ? y.pad({0, 0, 0, 0}, {0, 0, 0, size - lanes}) : y;
}

Tensor unit_length(const Tensor& x) { return x * ((x * x).sum({3}, true) + 1e-6).rsqrt(); }

Tensor delta_layer(Net& net, const Tensor& input) {
  const DeltaNet& d = net.c.delta;
  const int64_t keys = d.key_heads * d.key_lanes, values = d.value_heads * d.value_lanes;
  const int64_t n = std::max(d.key_lanes, d.value_lanes);
  const Tensor real = net.real_tokens();
  const DeltaInputs in = project(net, real.is_empty() ? input : input * real);
  const Tensor mixed = causal_convolution(net, "conv", in.mixed, d.conv);
  // The operator divides by sqrt(n); heads are as long as their keys.
  const Tensor q = unit_length(spread(net, mixed.narrow(2, 0, keys), d.key_heads, d.key_lanes, n)) *
                   std::sqrt(double(n) / double(d.key_lanes));
  const Tensor k = unit_length(spread(net, mixed.narrow(2, keys, keys), d.key_heads, d.key_lanes, n));
  const Tensor v = spread(net, mixed.narrow(2, 2 * keys, values), d.value_heads, d.value_lanes, n);
  const Tensor g =
      (in.a + net.weight("dt_bias", {d.value_heads})).softplus() * net.decay("a_log", {d.value_heads});
  const Tensor beta = in.b.sigmoid();
  Tensor y;
  if (net.cached()) {
    const std::string name = cat("layer.", net.layer, ".delta");
    const Tensor before = net.state(name, Shape(DType::f32, {net.batch, d.value_heads, n, n}));
    const auto [out, after] = gated_delta_net_carry(q, k, v, g, beta, before);
    net.set_state(name, after);
    y = out;
  } else {
    y = gated_delta_net(q, k, v, g, beta)[0];
  }
  y = y.narrow(3, 0, d.value_lanes).rms_norm(net.weight("delta_norm", {d.value_lanes}), net.c.norm_eps);
  y = y.reshape({net.batch, net.seq, values}) * in.z.silu();
  return net.linear("delta_out", y, net.c.hidden);
}

// ---- gated attention ----

// The projection of q holds for each head its query, then its gate.
Tensor gated_attention(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const int64_t wide = c.heads * c.head_dim, narrow = c.kv_heads * c.head_dim;
  const Tensor both = net.linear("q", x, 2 * wide).reshape({net.batch, net.seq, c.heads, 2 * c.head_dim});
  const auto half = [&](int64_t start) {
    return both.narrow(3, start, c.head_dim).reshape({net.batch, net.seq, wide});
  };
  const RopeTables& tables = net.rope(c.rope);
  const Tensor q = turn(norm_heads(net, "q_norm", half(0), c.heads), tables, c.rope, c.head_dim);
  const Tensor k =
      turn(norm_heads(net, "k_norm", net.linear("k", x, narrow), c.kv_heads), tables, c.rope, c.head_dim);
  const Tensor y = attend(net, q, k, net.linear("v", x, narrow), heads_of(net));
  return net.linear("o", y * half(c.head_dim).sigmoid(), c.hidden);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    const Tensor h = net.rms_norm("attn_norm", x);
    x = x + (net.mixer() == Mixer::linear ? delta_layer(net, h) : gated_attention(net, h));
    x = x + feed_forward(net, net.rms_norm("ffn_norm", x));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

void build_draft(Net& net) {
  Tensor x = draft_input(net);
  net.enter_draft("mtp.", 0);
  x = x + gated_attention(net, net.rms_norm("attn_norm", x));
  x = x + feed_forward(net, net.rms_norm("ffn_norm", x));
  net.leave_draft();
  finish_draft(net, x);
}

constexpr std::string_view kNextHf[] = {"qwen3_next"}, kNextGguf[] = {"qwen3next"},
                           k35Hf[] = {"qwen3_5_text", "qwen3_5_moe_text"},
                           k35Gguf[] = {"qwen35", "qwen35moe"}, kUnread[] = {"mtp."},
                           // heads of values in another order
    kChanged[] = {"in_qkv", "in_z", "in_b", "in_a", "delta_out"};

}  // namespace

constexpr Architecture kQwen3Next{"qwen3_next", kNextHf, kNextGguf, kNames, kDecoderPrefixes, configure,
                                  build,        kUnread, nullptr,   {},     build_draft};
constexpr Architecture kQwen35{"qwen3_5", k35Hf,   k35Gguf, kNames,   kDecoderPrefixes, configure,
                               build,     kUnread, nullptr, kChanged, build_draft};

}  // namespace rlx::models
