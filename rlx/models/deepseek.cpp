// DeepSeek V2 and V3: latent attention. Keys and values of all heads come from one short vector a token, beside one rotary key that
// all heads share; experts are chosen from the best groups, beside some for every token.
//
//   latent = norm(x Wa)      k_h = (latent Wk_h, turned x Wr)     v_h = latent Wv_h
//
// A cache holds (latent, turned key) alone: q_h . k_h = (q_h Wk_h^T) . latent + .., so with states heads attend in the latent space
// and Wv_h comes after the sum.
#include <cmath>

#include "rlx/models/architecture.h"
#include "rlx/models/draft.h"
#include "rlx/models/layers.h"

namespace rlx::models {
namespace {

constexpr double kLatentEps = 1e-6;  // of the norms inside attention, whatever the configuration says

constexpr WeightName kNames[] = {
    {"embed", "@embed_tokens.weight", "token_embd.weight"},
    {"norm", "@norm.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"attn_norm", "@layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"q", "@layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"q_a", "@layers.{}.self_attn.q_a_proj.weight", "blk.{}.attn_q_a.weight"},
    {"q_a_norm", "@layers.{}.self_attn.q_a_layernorm.weight", "blk.{}.attn_q_a_norm.weight"},
    {"q_b", "@layers.{}.self_attn.q_b_proj.weight", "blk.{}.attn_q_b.weight"},
    {"kv_a", "@layers.{}.self_attn.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
    {"kv_a_norm", "@layers.{}.self_attn.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
    {"kv_b", "@layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_kv_b.weight"},
    {"k_b", "", "blk.{}.attn_k_b.weight"},  // newer files of GGUF have kv_b as [heads, rank, plain]
    {"v_b", "", "blk.{}.attn_v_b.weight"},  // and [heads, value, rank]
    {"o", "@layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"ffn_norm", "@layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"gate", "@layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "@layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"gate_up", ""},
    {"down", "@layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"router", "@layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"router_correction", "@layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {"expert_gate", "@layers.{}.mlp.experts.{e}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
    {"expert_up", "@layers.{}.mlp.experts.{e}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"expert_gate_up", "@layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"},
    {"expert_down", "@layers.{}.mlp.experts.{e}.down_proj.weight|@layers.{}.mlp.experts.down_proj",
     "blk.{}.ffn_down_exps.weight"},
    {"shared_gate", "@layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
    {"shared_up", "@layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
    {"shared_down", "@layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
    {"draft_in", "@layers.{}.eh_proj.weight", "blk.{}.nextn.eh_proj.weight"},
    {"draft_embed_norm", "@layers.{}.enorm.weight", "blk.{}.nextn.enorm.weight"},
    {"draft_hidden_norm", "@layers.{}.hnorm.weight", "blk.{}.nextn.hnorm.weight"},
    {"draft_norm", "@layers.{}.shared_head.norm.weight", "blk.{}.nextn.shared_head_norm.weight"},
    {"draft_embed", "@layers.{}.embed_tokens.weight", "blk.{}.nextn.embed_tokens.weight"},
    {"draft_head", "@layers.{}.shared_head.head.weight", "blk.{}.nextn.shared_head_head.weight"},
};

// Keys and values are as long as a head; newer files of GGUF tell the latent ones beside them.
Latent latent_lanes(ConfigSource& s) {
  const int64_t q_rank = s.find_integer({"q_lora_rank", "attention.q_lora_rank"}).value_or(0);
  const int64_t kv_rank = s.integer({"kv_lora_rank", "attention.kv_lora_rank"});
  const int64_t rope = s.integer({"qk_rope_head_dim", "rope.dimension_count"});
  const int64_t value = s.integer({"v_head_dim", "attention.value_length_mla|attention.value_length"});
  const int64_t plain = s.is_gguf() ? s.integer({"", "attention.key_length_mla|attention.key_length"}) - rope
                                    : s.integer({"qk_nope_head_dim"});
  return {q_rank, kv_rank, plain, rope, value};
}

// A stretched text also sharpens the scores. GGUF tells 0.1 mscale, and its cosines are not scaled.
double yarn_sharpening(ConfigSource& s, Config& c) {
  double mscale = 0;
  if (s.is_gguf()) {
    mscale = 10 * s.find_real({"", "rope.scaling.yarn_log_multiplier"}).value_or(0);
    c.rope.magnitude /= yarn_magnitude(c.rope.factor);
  } else {
    auto scaling = s.object("rope_parameters");
    if (!scaling) scaling = s.object("rope_scaling");
    if (const auto v = scaling ? scaling->find("mscale_all_dim") : std::nullopt) mscale = v->real();
  }
  return std::pow(yarn_magnitude(c.rope.factor, mscale), 2);
}

void read_latent(ConfigSource& s, Config& c) {
  c.latent = latent_lanes(s);
  read_decoder(s, c);
  s.ignore("qk_head_dim");
  c.head_dim = c.latent.plain_lanes + c.latent.rope_lanes;
  c.kv_heads = c.heads;
  c.rope = read_rope(s, c, c.latent.rope_lanes);
  c.rope.interleaved = true;
  c.attention_scale = 1 / std::sqrt(double(c.head_dim));
  if (c.rope.kind == Rope::Kind::yarn) c.attention_scale *= yarn_sharpening(s, c);
}

void read_experts(ConfigSource& s, Config& c) {
  const int64_t width = s.integer({"moe_intermediate_size", "expert_feed_forward_length"});
  const int64_t first = s.find_integer({"first_k_dense_replace", "leading_dense_block_count"}).value_or(0);
  const int64_t step = s.find_integer({"moe_layer_freq"}).value_or(1);
  c.moe = {.experts = s.find_integer({"n_routed_experts|num_local_experts", "expert_count"}).value_or(0),
           .chosen = s.integer({"num_experts_per_tok", "expert_used_count"}),
           .width = width,
           .shared_width = width * s.find_integer({"n_shared_experts", "expert_shared_count"}).value_or(0),
           .groups = s.find_integer({"n_group", "expert_group_count"}).value_or(1),
           .groups_chosen = s.find_integer({"topk_group", "expert_group_used_count"}).value_or(1),
           .scale = s.find_real({"routed_scaling_factor", "expert_weights_scale"}).value_or(1)};
  if (s.is_gguf() && c.moe.scale == 0) c.moe.scale = 1;  // says nothing
  if (step < 1 || c.moe.groups < 1 || c.moe.experts % c.moe.groups != 0 || c.moe.chosen > c.moe.experts)
    throw invalid(s.where(), c.moe.chosen, " of ", c.moe.experts, " experts in ", c.moe.groups,
                  " groups, every ", step, " layers, cannot be");
  for (int64_t i = 0; i < c.layers; ++i) c.moe.layers.push_back(i >= first && i % step == 0);
}

// How GGUF writes the function that makes scores of logits; older files of V2 do not tell it.
constexpr int64_t kSoftmaxScores = 1, kSigmoidScores = 2;

bool has_sigmoid_scores(const io::GgufFile& file) {
  const io::GgufValue* v = file.find("deepseek2.expert_gating_func");
  return v != nullptr && v->integer() == kSigmoidScores;
}

bool has_other_scores(const io::GgufFile& file) { return !has_sigmoid_scores(file); }

void configure2(ConfigSource& s, Config& c) {
  read_latent(s, c);
  read_experts(s, c);
  s.require_flag({"norm_topk_prob"}, false);
  c.moe.normalised = s.find_flag({"", "expert_weights_norm"}).value_or(false);
  s.require_flag({"rope_interleave"}, true);  // V3's word
  s.require_text({"scoring_func"}, "softmax");
  if (const auto v = s.find_integer({"", "expert_gating_func"}); v && *v != kSoftmaxScores)
    throw invalid(s.where(), "expert_gating_func is ", *v, "; 1 (softmax) or 2 (sigmoid) expected");
  if (s.is_gguf()) return;  // groups that are told are used
  const std::string method = s.find_text({"topk_method"}).value_or("greedy");
  if (method == "greedy") {
    c.moe.groups = 1;
  } else if (method != "group_limited_greedy") {
    throw invalid(s.where(), "topk_method '", method, "' is not known; known: greedy, group_limited_greedy");
  }
}

void configure3(ConfigSource& s, Config& c) {
  read_latent(s, c);
  c.rope.interleaved = s.find_flag({"rope_interleave"}).value_or(true);
  read_experts(s, c);
  s.require_text({"scoring_func"}, "sigmoid");
  s.find_integer({"", "expert_gating_func"});  // sigmoid, or it would be V2
  s.require_text({"topk_method"}, "noaux_tc");
  c.moe.sigmoid = true;
  c.moe.group_top = 2;
  c.moe.normalised = s.find_flag({"norm_topk_prob", "expert_weights_norm"}).value_or(!s.is_gguf());
  c.draft_layers = s.find_integer({"num_nextn_predict_layers"}).value_or(c.draft_layers);
}

// ---- latent attention ----

Tensor small_norm(Net& net, std::string_view key, const Tensor& x) {
  return x.rms_norm(net.weight(key, {x.dim(-1)}), kLatentEps);
}

// x [batch, seq, heads, in], for each head times w [heads, in, out]: [batch, seq, heads, out].
Tensor by_head(Net& net, const Tensor& x, const Tensor& w) {
  const Dim heads = x.dim(2), rows = net.batch * net.seq;
  const Tensor y = x.reshape({rows, heads, x.dim(3)}).transpose({1, 0, 2}).matmul(w);
  return y.transpose({1, 0, 2}).reshape({net.batch, net.seq, heads, w.dim(2)});
}

struct LatentParts {
  Tensor q;       // [batch, seq, heads, plain + rope], turned
  Tensor latent;  // [batch, seq, rank], normed
  Tensor key;     // [batch, seq, rope], turned
};

// The weight of keys and values: [heads, plain + value, rank].
Tensor key_value_weight(Net& net) {
  const Config& c = net.c;
  const Latent& l = c.latent;
  if (!net.has("k_b"))
    return net.weight("kv_b", {c.heads * (l.plain_lanes + l.value_lanes), l.kv_rank})
        .reshape({c.heads, l.plain_lanes + l.value_lanes, l.kv_rank});
  return concat({net.weight("k_b", {c.heads, l.kv_rank, l.plain_lanes}).t(),
                 net.weight("v_b", {c.heads, l.value_lanes, l.kv_rank})},
                {.axis = 1});
}

// Keys and values of every head, written out.
Tensor attend_plain(Net& net, const LatentParts& p) {
  const Config& c = net.c;
  const Latent& l = c.latent;
  const int64_t lanes = l.plain_lanes + l.value_lanes;
  const Tensor flat = net.has("k_b")
                          ? p.latent.matmul(key_value_weight(net).reshape({c.heads * lanes, l.kv_rank}).t())
                          : net.linear("kv_b", p.latent, c.heads * lanes);
  const Tensor kv = flat.reshape({net.batch, net.seq, c.heads, lanes});
  const Tensor shared = p.key.unsqueeze(2).expand({net.batch, net.seq, c.heads, l.rope_lanes});
  const Tensor k = concat({kv.narrow(3, 0, l.plain_lanes), shared}, {.axis = 3});
  const auto packed = [&](const Tensor& x) {
    return x.reshape({net.batch, net.seq, Dim(c.heads) * x.dim(3)});
  };
  return attend(net, packed(p.q), packed(k), packed(kv.narrow(3, l.plain_lanes, l.value_lanes)),
                heads_of(net));
}

// All heads over the one latent key of a token, which is its value too.
Tensor attend_latent(Net& net, const LatentParts& p) {
  const Config& c = net.c;
  const Latent& l = c.latent;
  const Tensor w = key_value_weight(net);
  const Tensor q = concat({by_head(net, p.q.narrow(3, 0, l.plain_lanes), w.narrow(1, 0, l.plain_lanes)),
                           p.q.narrow(3, l.plain_lanes, l.rope_lanes)},
                          {.axis = 3});
  const int64_t lanes = l.kv_rank + l.rope_lanes;
  const Tensor y = attend_shared(
      net, q.reshape({net.batch, net.seq, c.heads * lanes}), concat({p.latent, p.key}, {.axis = 2}),
      l.kv_rank, {.heads = c.heads, .kv_heads = 1, .lanes = lanes, .scale = c.attention_scale});
  const Tensor out = by_head(net, y.reshape({net.batch, net.seq, c.heads, l.kv_rank}),
                             w.narrow(1, l.plain_lanes, l.value_lanes).t());
  return out.reshape({net.batch, net.seq, c.heads * l.value_lanes});
}

Tensor latent_attention(Net& net, const Tensor& x) {
  const Config& c = net.c;
  const Latent& l = c.latent;
  const Tensor flat = l.q_rank > 0
                          ? net.linear("q_b", small_norm(net, "q_a_norm", net.linear("q_a", x, l.q_rank)),
                                       c.heads * c.head_dim)
                          : net.linear("q", x, c.heads * c.head_dim);
  const Tensor q = flat.reshape({net.batch, net.seq, c.heads, c.head_dim});
  const Tensor a = net.linear("kv_a", x, l.kv_rank + l.rope_lanes);
  const RopeTables& tables = net.rope(c.rope);
  const Tensor q_turned =
      turn(q.narrow(3, l.plain_lanes, l.rope_lanes).reshape({net.batch, net.seq, c.heads * l.rope_lanes}),
           tables, c.rope, l.rope_lanes)
          .reshape({net.batch, net.seq, c.heads, l.rope_lanes});
  const LatentParts parts{concat({q.narrow(3, 0, l.plain_lanes), q_turned}, {.axis = 3}),
                          small_norm(net, "kv_a_norm", a.narrow(2, 0, l.kv_rank)),
                          turn(a.narrow(2, l.kv_rank, l.rope_lanes), tables, c.rope, l.rope_lanes)};
  const bool plain = !net.cached() || net.options.attention || net.options.linear;
  return net.linear("o", plain ? attend_plain(net, parts) : attend_latent(net, parts), c.hidden);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + latent_attention(net, net.rms_norm("attn_norm", x));
    x = x + feed_forward(net, net.rms_norm("ffn_norm", x));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

void build_draft(Net& net) {
  Tensor x = draft_input(net);
  x = x + latent_attention(net, net.rms_norm("attn_norm", x));
  x = x + feed_forward(net, net.rms_norm("ffn_norm", x));
  finish_draft(net, x);
}

constexpr std::string_view k2Hf[] = {"deepseek_v2"}, k3Hf[] = {"deepseek_v3"}, kGguf[] = {"deepseek2"},
                           kPrefixes[] = {"model.", ""};

}  // namespace

constexpr Architecture kDeepseek2{"deepseek_v2", k2Hf,  kGguf, kNames,          kPrefixes,
                                  configure2,    build, {},    has_other_scores};
constexpr Architecture kDeepseek3{"deepseek_v3",      k3Hf,       kGguf,      kNames,
                                  kPrefixes,          configure3, build,      {},
                                  has_sigmoid_scores, {},         build_draft};

}  // namespace rlx::models
