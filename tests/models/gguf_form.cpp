#include "tests/models/gguf_form.h"

#include <cmath>
#include <functional>
#include <map>

#include "rlx/io/gguf.h"
#include "rlx/io/literal.h"
#include "rlx/models/rope.h"

namespace rlx::test {
namespace {

using models::Config;
using models::Rope;
using Order = std::vector<int64_t>;  // row i of the result is row order[i]

struct Matrix {
  std::vector<int64_t> dims;
  std::vector<float> values;

  int64_t width() const { return dims.empty() ? 1 : int64_t(values.size()) / dims[0]; }
  Matrix rows(const Order& order) const {
    Matrix out{dims, {}};
    out.dims[0] = int64_t(order.size());
    const auto n = size_t(width());
    for (const int64_t r : order)
      out.values.insert(out.values.end(), values.begin() + long(size_t(r) * n),
                        values.begin() + long(size_t(r + 1) * n));
    return out;
  }
  Matrix columns(const Order& order) const {
    Matrix out{dims, {}};
    const int64_t n = width();
    for (int64_t r = 0; r < dims[0]; ++r)
      for (const int64_t c : order) out.values.push_back(values[size_t(r * n + c)]);
    return out;
  }
  Matrix mapped(const std::function<double(double)>& f) const {
    Matrix out = *this;
    for (float& v : out.values) v = float(f(double(v)));
    return out;
  }
  Matrix times(double f) const {
    return mapped([f](double v) { return v * f; });
  }
  Matrix shaped(std::vector<int64_t> to) const { return {std::move(to), values}; }
};

Order from_to(int64_t first, int64_t last) {
  Order out;
  for (int64_t i = first; i < last; ++i) out.push_back(i);
  return out;
}

// Rows (half, pair) of each head as (pair, half): the order of GGUF's Llama.
Order interleaved(int64_t rows, int64_t lanes) {
  Order out;
  for (int64_t r = 0; r < rows; ++r)
    out.push_back(r - r % lanes + r % lanes % 2 * (lanes / 2) + r % lanes / 2);
  return out;
}

// Value heads grouped by key head as tiles: head t * keys + k was head k * share + t. Of `lanes` rows each, from row `first` on.
Order tiled(const models::DeltaNet& d, int64_t lanes, int64_t first = 0) {
  const int64_t share = d.value_heads / d.key_heads;
  Order out = from_to(0, first);
  for (int64_t h = 0; h < d.value_heads; ++h)
    for (int64_t l = 0; l < lanes; ++l)
      out.push_back(first + (h % d.key_heads * share + h / d.key_heads) * lanes + l);
  return out;
}

class Form {
 public:
  Form(const models::Model& model, bool older) : model_(model), c_(model.config()), older_(older) {}

  void write(const std::string& path) {
    add_numbers();
    for (const io::TensorView& t : model_.file().tensors)
      add_tensor(with_draft_names(t.name), {t.dims, io::to_f32(t)});
    for (auto& [name, stack] : experts_) {
      Matrix all{{c_.moe.experts, stack[0].dims[0], stack[0].dims[1]}, {}};
      for (const auto& [e, m] : stack) all.values.insert(all.values.end(), m.values.begin(), m.values.end());
      put(name, all);
    }
    std::vector<io::TensorView> views;
    for (const auto& [name, literal] : tensors_) views.push_back(io::to_view(name, literal));
    for (const io::TensorView& v : views) out_.add_tensor(v);
    out_.write(path);
  }

  static std::string name_of(const models::Config& c) {
    if (c.architecture == "gemma3" && c.encoder) return "gemma-embedding";
    const std::map<std::string, std::string> names{{"bert", "bert"},
                                                   {"roberta", "bert"},
                                                   {"distilbert", "bert"},
                                                   {"modernbert", "modern-bert"},
                                                   {"deepseek_v2", "deepseek2"},
                                                   {"deepseek_v3", "deepseek2"},
                                                   {"falcon_h1", "falcon-h1"},
                                                   {"gemma2", "gemma2"},
                                                   {"gemma3", "gemma3"},
                                                   {"gpt2", "gpt2"},
                                                   {"gpt_neox", "gptneox"},
                                                   {"granite", "granite"},
                                                   {"llama", "llama"},
                                                   {"mistral", "llama"},
                                                   {"mixtral", "llama"},
                                                   {"mamba", "mamba"},
                                                   {"mamba2", "mamba2"},
                                                   {"olmo2", "olmo2"},
                                                   {"phi3", "phi3"},
                                                   {"qwen2", "qwen2"},
                                                   {"qwen2_moe", "qwen2moe"},
                                                   {"qwen3", "qwen3"},
                                                   {"qwen3_moe", "qwen3moe"},
                                                   {"qwen3_next", "qwen3next"},
                                                   {"qwen3_5", "qwen35"}};
    const auto it = names.find(c.architecture);
    return it == names.end() ? "" : it->second;
  }

 private:
  bool is(std::string_view name) const { return c_.architecture == name; }
  bool is_any(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), c_.architecture) != names.end();
  }
  void u32(const std::string& key, int64_t v) { out_.add_u32(name_ + "." + key, uint32_t(v)); }
  void f32(const std::string& key, double v) { out_.add_f32(name_ + "." + key, float(v)); }
  void put(const std::string& name, const Matrix& m) {
    tensors_.emplace(name, Literal::of<float>(Dims(m.dims.begin(), m.dims.end()), m.values));
  }

  // ---- metadata ----

  void add_numbers() {
    out_.add_string("general.architecture", name_);
    out_.add_string("tokenizer.ggml.model", "no_vocab");
    const bool recurrent = is_any({"mamba", "mamba2"});
    // RoBERTa's positions begin behind its padding id.
    const int64_t unused = is("roberta") ? c_.padding_id + 1 : 0;
    u32("vocab_size", c_.vocab);
    u32("block_count", c_.layers + (model_.has_draft() ? 1 : 0));
    if (model_.has_draft()) u32("nextn_predict_layers", 1);
    u32("context_length", recurrent ? 1 << 20 : c_.max_positions - unused);
    u32("embedding_length", c_.hidden);
    u32("feed_forward_length", c_.intermediate);
    u32("attention.head_count", c_.heads);
    if (!recurrent)
      u32("attention.head_count_kv", is_any({"deepseek_v2", "deepseek_v3"}) && !older_ ? 1 : c_.kv_heads);
    const bool layer_norm = (c_.encoder && !is("gemma3")) || is_any({"gpt2", "gpt_neox"});
    f32(layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", c_.norm_eps);
    if (c_.encoder) out_.add_bool(name_ + ".attention.causal", false);
    if (c_.window > 0) u32("attention.sliding_window", c_.window);
    if (c_.rope.kind != Rope::Kind::none) add_rope();
    if (c_.latent.kv_rank > 0) {
      add_latent();
    } else if (c_.heads > 0 && c_.head_dim * c_.heads != c_.hidden) {
      u32("attention.key_length", c_.head_dim);
      u32("attention.value_length", c_.head_dim);
    }
    if (c_.moe.experts > 0) add_expert_numbers();
    if (c_.ssm.state > 0) add_state_space();
    if (c_.delta.conv > 0) add_delta();
    add_others();
  }

  void add_rope() {
    const Rope& r = c_.rope;
    f32("rope.freq_base", r.theta);
    u32("rope.dimension_count", r.lanes);
    if (r.kind == Rope::Kind::yarn || r.kind == Rope::Kind::longrope)
      u32("rope.scaling.original_context_length", r.original_positions);
    if (r.kind == Rope::Kind::yarn) {
      out_.add_string(name_ + ".rope.scaling.type", "yarn");
      f32("rope.scaling.factor", r.factor);
      f32("rope.scaling.yarn_beta_fast", r.beta_fast);
      f32("rope.scaling.yarn_beta_slow", r.beta_slow);
    }
    const auto factors = [&](const std::string& name, const std::vector<double>& v) {
      put(name, {{int64_t(v.size())}, std::vector<float>(v.begin(), v.end())});
    };
    if (r.kind == Rope::Kind::longrope) {
      f32("rope.scaling.attn_factor", r.magnitude);
      factors("rope_factors_short.weight", r.short_factors);
      factors("rope_factors_long.weight", r.long_factors);
    }
    if (r.kind == Rope::Kind::llama3) {  // what the frequencies are divided by
      const std::vector<double> own = models::rope_frequencies(r);
      std::vector<double> v;
      for (size_t i = 0; i < own.size(); ++i)
        v.push_back(std::pow(r.theta, -2.0 * double(i) / double(r.lanes)) / own[i]);
      factors("rope_freqs.weight", v);
    }
  }

  void add_latent() {
    const models::Latent& l = c_.latent;
    if (l.q_rank > 0) u32("attention.q_lora_rank", l.q_rank);
    u32("attention.kv_lora_rank", l.kv_rank);
    const int64_t key = l.plain_lanes + l.rope_lanes;
    u32("attention.key_length", older_ ? key : l.kv_rank + l.rope_lanes);
    u32("attention.value_length", older_ ? l.value_lanes : l.kv_rank);
    if (!older_) u32("attention.key_length_mla", key);
    if (!older_) u32("attention.value_length_mla", l.value_lanes);
    if (c_.rope.kind != Rope::Kind::yarn) return;
    // attention_scale = (1 + 0.1 mscale ln(factor))^2 / sqrt(key)
    const double sharper = std::sqrt(c_.attention_scale * std::sqrt(double(key)));
    f32("rope.scaling.yarn_log_multiplier", (sharper - 1) / std::log(c_.rope.factor));
    if (c_.rope.magnitude != 1) f32("rope.scaling.attn_factor", c_.rope.magnitude);
  }

  void add_expert_numbers() {
    const models::Experts& m = c_.moe;
    u32("expert_count", m.experts);
    u32("expert_used_count", m.chosen);
    if (is("mixtral")) return;
    u32("expert_feed_forward_length", m.width);
    if (!is_any({"deepseek_v2", "deepseek_v3"})) {
      if (m.shared_width > 0) u32("expert_shared_feed_forward_length", m.shared_width);
      return;
    }
    u32("leading_dense_block_count",
        int64_t(std::find(m.layers.begin(), m.layers.end(), true) - m.layers.begin()));
    u32("expert_shared_count", m.shared_width / m.width);
    u32("expert_group_count", m.groups);
    u32("expert_group_used_count", m.groups_chosen);
    f32("expert_weights_scale", m.scale);
    out_.add_bool(name_ + ".expert_weights_norm", m.normalised);
    if (m.sigmoid || !older_) u32("expert_gating_func", m.sigmoid ? 2 : 1);
  }

  void add_state_space() {
    const models::StateSpace& m = c_.ssm;
    u32("ssm.conv_kernel", m.conv);
    u32("ssm.inner_size", m.inner);
    u32("ssm.state_size", m.state);
    u32("ssm.time_step_rank", m.heads > 0 ? m.heads : m.dt_rank);
    if (m.groups > 0) u32("ssm.group_count", m.groups);
  }

  void add_delta() {
    const models::DeltaNet& d = c_.delta;
    u32("ssm.conv_kernel", d.conv);
    u32("ssm.state_size", d.key_lanes);
    u32("ssm.group_count", d.key_heads);
    u32("ssm.time_step_rank", d.value_heads);
    u32("ssm.inner_size", d.value_heads * d.value_lanes);
    u32("full_attention_interval", 4);
    // Time, height and width of a picture take turns, so that each has about a third of the pairs of lanes.
    const int32_t pairs = int32_t(c_.rope.lanes / 2), third = pairs / 3;
    const int32_t sections[] = {pairs - 2 * third, third, third, 0};
    if (is("qwen3_5")) out_.add_i32s(name_ + ".rope.dimension_sections", sections);
  }

  void add_others() {
    if (is("gpt_neox")) out_.add_bool(name_ + ".use_parallel_residual", c_.parallel_residual);
    if (is("granite")) {
      f32("attention.scale", c_.attention_scale);
      f32("embedding_scale", c_.embedding_scale);
      f32("residual_scale", c_.residual_scale);
      f32("logit_scale", 1 / c_.logit_scale);
    }
    if (is("gemma2")) {
      f32("attn_logit_softcapping", c_.attention_softcap);
      f32("final_logit_softcapping", c_.logit_softcap);
      f32("attention.scale", c_.attention_scale);  // the checkpoint has one that its sizes do not tell
    }
    if (is("gemma3")) {
      f32("rope.freq_base_swa", c_.window_rope.theta);
      f32("attention.scale", c_.attention_scale);  // as that of Gemma 2
    }
    if (is("modernbert")) {
      f32("rope.freq_base_swa", c_.window_rope.theta);
      u32("attention.sliding_window_pattern", 3);
    }
  }

  // ---- tensors ----

  // The draft head as a layer behind the last, its own weights under "nextn."
  std::string with_draft_names(std::string name) const {
    const std::string layer = cat("model.layers.", c_.layers, ".");
    const auto renamed = [&](std::string_view from, std::string_view to) {
      if (name.starts_with(from)) name.replace(0, from.size(), to);
    };
    renamed("mtp.layers.0.", layer);
    renamed("mtp.fc.", layer + "nextn.eh_proj.");
    renamed("mtp.pre_fc_norm_embedding.", layer + "nextn.enorm.");
    renamed("mtp.pre_fc_norm_hidden.", layer + "nextn.hnorm.");
    renamed("mtp.norm.", layer + "nextn.shared_head_norm.");
    for (const char* word : {"eh_proj.", "enorm.", "hnorm.", "embed_tokens."})
      renamed(layer + word, cat(layer, "nextn.", word));
    renamed(layer + "shared_head.head.", layer + "nextn.shared_head_head.");
    renamed(layer + "shared_head.norm.", layer + "nextn.shared_head_norm.");
    return name;
  }

  void add_tensor(const std::string& hf, Matrix m) {
    if (is_any({"bert", "roberta", "distilbert"}) && (hf.starts_with("pooler") || hf.starts_with("vocab_")))
      return;
    if (const size_t at = hf.find(".experts."); at != hf.npos) return keep_expert(hf, at, std::move(m));
    if (is("falcon_h1")) m = with_multipliers(hf, std::move(m));
    if (is_any({"gemma2", "gemma3", "qwen3_next", "qwen3_5"}) && hf.ends_with("norm.weight") &&
        hf.find("linear_attn.norm") == hf.npos)
      m = m.mapped([](double v) { return v + 1; });
    if (hf.ends_with("A_log")) m = m.mapped([](double v) { return -std::exp(v); });
    if (hf.find("conv1d.weight") != hf.npos) m = m.shaped({m.dims[0], m.dims[2]});
    if (is_any({"mamba2", "falcon_h1"}) && (hf.ends_with("A_log") || hf.ends_with(".D")))
      m = m.shaped({m.dims[0], 1});
    const bool attention = hf.find("q_proj") != hf.npos || hf.find("k_proj") != hf.npos;
    if (attention && is_any({"llama", "mistral", "mixtral", "granite"}))
      m = m.rows(interleaved(m.dims[0], c_.head_dim));
    if (is("gpt_neox") && hf.find("query_key_value") != hf.npos) m = m.rows(neox_order());
    if (is("gpt2") && m.dims.size() == 2 && hf.find(".h.") != hf.npos) m = transposed(m);
    if (is("roberta") && hf.find("position_embeddings") != hf.npos)
      m = m.rows(from_to(c_.padding_id + 1, m.dims[0]));
    if (is("qwen3_5")) m = with_tiles(hf, std::move(m));
    if (is("qwen3_next") && !older_ && hf.find("in_proj_qkvz") != hf.npos) return split_by_head(hf, m);
    if (hf.find("kv_b_proj") != hf.npos && !older_) return split_keys_and_values(hf, m);
    put(gguf_name(hf), m);
  }

  // "…layers.2.mlp.experts.5.gate_proj.weight" joins "blk.2.ffn_gate_exps.weight".
  void keep_expert(const std::string& hf, size_t at, Matrix m) {
    const size_t number = at + 9, dot = hf.find('.', number);
    const std::string kind = hf.substr(dot + 1, hf.find('.', dot + 1) - dot - 1);
    const std::string word = kind == "gate_proj" || kind == "w1"   ? "gate"
                             : kind == "down_proj" || kind == "w2" ? "down"
                                                                   : "up";
    const size_t layer = hf.find("layers.") + 7;
    experts_[cat("blk.", hf.substr(layer, hf.find('.', layer) - layer), ".ffn_", word, "_exps.weight")]
        .emplace(std::stoll(hf.substr(number, dot - number)), std::move(m));
  }

  static Matrix transposed(const Matrix& m) {
    Matrix out{{m.dims[1], m.dims[0]}, {}};
    for (int64_t c = 0; c < m.dims[1]; ++c)
      for (int64_t r = 0; r < m.dims[0]; ++r) out.values.push_back(m.values[size_t(r * m.dims[1] + c)]);
    return out;
  }

  // (head, part, lane) to (part, head, lane).
  Order neox_order() const {
    Order out;
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t h = 0; h < c_.heads; ++h)
        for (int64_t l = 0; l < c_.head_dim; ++l) out.push_back((h * 3 + part) * c_.head_dim + l);
    return out;
  }

  Matrix with_multipliers(const std::string& hf, Matrix m) const {
    const auto part = [&](const char* p) { return hf.find(p) != hf.npos; };
    if (part("embed_tokens")) return m.times(c_.embedding_scale);
    if (part("lm_head")) return m.times(c_.logit_scale);
    if (part("gate_proj")) return m.times(c_.gate_scale);
    if (part("down_proj")) return m.times(c_.down_scale);
    if (part("k_proj")) return m.times(c_.attention_in * c_.key_scale);
    if (part("q_proj") || part("v_proj")) return m.times(c_.attention_in);
    if (part("o_proj")) return m.times(c_.attention_out);
    if (part("out_proj")) return m.times(c_.ssm_out);
    if (!part("in_proj")) return m;
    const models::StateSpace& s = c_.ssm;
    const int64_t sizes[] = {s.inner, s.inner, s.groups * s.state, s.groups * s.state, s.heads};
    size_t at = 0;
    for (size_t i = 0; i < 5; ++i)
      for (int64_t n = sizes[i] * m.width(); n > 0; --n)
        m.values[at++] *= float(c_.ssm_in * c_.ssm_scales[i]);
    return m;
  }

  Matrix with_tiles(const std::string& hf, Matrix m) const {
    const models::DeltaNet& d = c_.delta;
    const auto part = [&](const char* p) { return hf.find(p) != hf.npos; };
    const int64_t keys = 2 * d.key_heads * d.key_lanes;
    if (part("in_proj_qkv") || part("linear_attn.conv1d")) return m.rows(tiled(d, d.value_lanes, keys));
    if (part("in_proj_z")) return m.rows(tiled(d, d.value_lanes));
    if (part("in_proj_a") || part("in_proj_b") || part("A_log") || part("dt_bias"))
      return m.rows(tiled(d, 1));
    if (part("linear_attn.out_proj")) return m.columns(tiled(d, d.value_lanes));
    return m;
  }

  // q, k, v, z of each key head as all of q, of k and of v, and those of z.
  void split_by_head(const std::string& hf, const Matrix& m) {
    const models::DeltaNet& d = c_.delta;
    const int64_t share = d.value_heads / d.key_heads * d.value_lanes, width = 2 * d.key_lanes + 2 * share;
    Order qkv, z;
    const auto take = [&](Order& into, int64_t start, int64_t size) {
      for (int64_t h = 0; h < d.key_heads; ++h)
        for (int64_t i = 0; i < size; ++i) into.push_back(h * width + start + i);
    };
    take(qkv, 0, d.key_lanes);
    take(qkv, d.key_lanes, d.key_lanes);
    take(qkv, 2 * d.key_lanes, share);
    take(z, 2 * d.key_lanes + share, share);
    const std::string front = gguf_name(hf.substr(0, hf.find("linear_attn")));
    put(front + "attn_qkv.weight", m.rows(qkv));
    put(front + "attn_gate.weight", m.rows(z));
  }

  void split_keys_and_values(const std::string& hf, const Matrix& m) {
    const models::Latent& l = c_.latent;
    const int64_t lanes = l.plain_lanes + l.value_lanes;
    Matrix k{{c_.heads, l.kv_rank, l.plain_lanes}, {}}, v{{c_.heads, l.value_lanes, l.kv_rank}, {}};
    for (int64_t h = 0; h < c_.heads; ++h) {
      const Matrix keys = transposed(m.rows(from_to(h * lanes, h * lanes + l.plain_lanes)));
      const Matrix values = m.rows(from_to(h * lanes + l.plain_lanes, (h + 1) * lanes));
      k.values.insert(k.values.end(), keys.values.begin(), keys.values.end());
      v.values.insert(v.values.end(), values.values.begin(), values.values.end());
    }
    const std::string front = gguf_name(hf.substr(0, hf.find("self_attn")));
    put(front + "attn_k_b.weight", k);
    put(front + "attn_v_b.weight", v);
  }

  // ---- names ----

  using Words = std::vector<std::pair<std::string_view, std::string_view>>;

  // Parts of names; the first of a name that is found is replaced, one after the other.
  const Words& words() const {
    static const Words kEncoder{{"distilbert.", ""},
                                {"embeddings.word_embeddings", "token_embd"},
                                {"embeddings.position_embeddings", "position_embd"},
                                {"embeddings.token_type_embeddings", "token_types"},
                                {"embeddings.LayerNorm", "token_embd_norm"},
                                {"encoder.layer.", "blk."},
                                {"transformer.layer.", "blk."},
                                {"attention.self.query", "attn_q"},
                                {"attention.self.key", "attn_k"},
                                {"attention.self.value", "attn_v"},
                                {"attention.q_lin", "attn_q"},
                                {"attention.k_lin", "attn_k"},
                                {"attention.v_lin", "attn_v"},
                                {"attention.out_lin", "attn_output"},
                                {"attention.output.dense", "attn_output"},
                                {"attention.output.LayerNorm", "attn_output_norm"},
                                {"sa_layer_norm", "attn_output_norm"},
                                {"output_layer_norm", "layer_output_norm"},
                                {"intermediate.dense", "ffn_up"},
                                {"ffn.lin1", "ffn_up"},
                                {"ffn.lin2", "ffn_down"},
                                {".output.dense", ".ffn_down"},
                                {".output.LayerNorm", ".layer_output_norm"}};
    static const Words kModernbert{{"embeddings.tok_embeddings", "token_embd"},
                                   {"embeddings.norm", "token_embd_norm"},
                                   {"final_norm", "output_norm"},
                                   {"layers.", "blk."},
                                   {"attn.Wqkv", "attn_qkv"},
                                   {"attn.Wo", "attn_output"},
                                   {"mlp.Wi", "ffn_up"},
                                   {"mlp.Wo", "ffn_down"},
                                   {"mlp_norm", "ffn_norm"}};
    static const Words kGpt{{"transformer.h.", "blk."},
                            {"transformer.", ""},
                            {"gpt_neox.", ""},
                            {"wte.", "token_embd."},
                            {"wpe.", "position_embd."},
                            {"ln_f", "output_norm"},
                            {"embed_in", "token_embd"},
                            {"embed_out", "output"},
                            {"final_layer_norm", "output_norm"},
                            {"layers.", "blk."},
                            {"ln_1", "attn_norm"},
                            {"ln_2", "ffn_norm"},
                            {"input_layernorm", "attn_norm"},
                            {"post_attention_layernorm", "ffn_norm"},
                            {"attn.c_attn", "attn_qkv"},
                            {"attn.c_proj", "attn_output"},
                            {"mlp.c_fc", "ffn_up"},
                            {"mlp.c_proj", "ffn_down"},
                            {"attention.query_key_value", "attn_qkv"},
                            {"attention.dense", "attn_output"},
                            {"mlp.dense_h_to_4h", "ffn_up"},
                            {"mlp.dense_4h_to_h", "ffn_down"}};
    static const Words kMamba{{"backbone.", ""},
                              {"embeddings", "token_embd"},
                              {"norm_f", "output_norm"},
                              {"lm_head", "output"},
                              {"layers.", "blk."},
                              {"mixer.norm", "ssm_norm"},
                              {".norm.", ".attn_norm."},
                              {"mixer.in_proj", "ssm_in"},
                              {"mixer.out_proj", "ssm_out"},
                              {"mixer.conv1d", "ssm_conv1d"},
                              {"mixer.x_proj", "ssm_x"},
                              {"mixer.dt_proj", "ssm_dt"},
                              {"mixer.dt_bias", "ssm_dt.bias"},
                              {"mixer.A_log", "ssm_a"},
                              {"mixer.D", "ssm_d"}};
    static const Words kDecoder{{"model.", ""},
                                {".nextn.embed_tokens", ".nextn.tokens"},
                                {"embed_tokens", "token_embd"},
                                {".nextn.tokens", ".nextn.embed_tokens"},
                                {"final_layernorm", "output_norm"},
                                {"lm_head", "output"},
                                {"layers.", "blk."},
                                {"self_attn.q_proj", "attn_q"},
                                {"self_attn.k_proj", "attn_k"},
                                {"self_attn.v_proj", "attn_v"},
                                {"self_attn.o_proj", "attn_output"},
                                {"self_attn.qkv_proj", "attn_qkv"},
                                {"self_attn.q_norm", "attn_q_norm"},
                                {"self_attn.k_norm", "attn_k_norm"},
                                {"self_attn.q_a_proj", "attn_q_a"},
                                {"self_attn.q_b_proj", "attn_q_b"},
                                {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                {"self_attn.kv_b_proj", "attn_kv_b"},
                                {"input_layernorm", "attn_norm"},
                                {"pre_feedforward_layernorm", "ffn_norm"},
                                {"post_feedforward_layernorm", "post_ffw_norm"},
                                {"pre_ff_layernorm", "ffn_norm"},
                                {"feed_forward.gate_proj", "ffn_gate"},
                                {"feed_forward.up_proj", "ffn_up"},
                                {"feed_forward.down_proj", "ffn_down"},
                                {"mlp.gate_up_proj", "ffn_up"},
                                {"mlp.gate_proj", "ffn_gate"},
                                {"mlp.up_proj", "ffn_up"},
                                {"mlp.down_proj", "ffn_down"},
                                {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                {"mlp.gate.", "ffn_gate_inp."},
                                {"block_sparse_moe.gate.", "ffn_gate_inp."},
                                {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                                {"mlp.shared_experts.", "mlp.shared_expert."},
                                {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                {"mamba.in_proj", "ssm_in"},
                                {"mamba.out_proj", "ssm_out"},
                                {"mamba.conv1d", "ssm_conv1d"},
                                {"mamba.dt_bias", "ssm_dt.bias"},
                                {"mamba.A_log", "ssm_a"},
                                {"mamba.D", "ssm_d"},
                                {"mamba.norm", "ssm_norm"},
                                {"linear_attn.in_proj_qkvz", "ssm_in"},
                                {"linear_attn.in_proj_ba", "ssm_ba"},
                                {"linear_attn.in_proj_qkv", "attn_qkv"},
                                {"linear_attn.in_proj_z", "attn_gate"},
                                {"linear_attn.in_proj_b", "ssm_beta"},
                                {"linear_attn.in_proj_a", "ssm_alpha"},
                                {"linear_attn.conv1d", "ssm_conv1d"},
                                {"linear_attn.dt_bias", "ssm_dt.bias"},
                                {"linear_attn.A_log", "ssm_a"},
                                {"linear_attn.norm", "ssm_norm"},
                                {"linear_attn.out_proj", "ssm_out"}};
    if (is("modernbert")) return kModernbert;
    if (c_.encoder && !is("gemma3")) return kEncoder;
    if (is_any({"gpt2", "gpt_neox"})) return kGpt;
    return is_any({"mamba", "mamba2"}) ? kMamba : kDecoder;
  }

  std::string gguf_name(std::string name) const {
    for (const auto& [from, to] : words())
      if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
    const bool behind = is_any({"gemma2", "gemma3", "olmo2", "qwen3_next", "qwen3_5"});
    if (const size_t at = name.find("post_attention_layernorm"); at != name.npos)
      name.replace(at, 24, behind ? "post_attention_norm" : "ffn_norm");
    if (is("falcon_h1") && !older_ && name.ends_with("ffn_norm.weight"))
      name.resize(name.size() - 7);  // as its files
    return name == "norm.weight" ? "output_norm.weight" : name;
  }

  const models::Model& model_;
  const Config& c_;
  bool older_;
  std::string name_ = name_of(c_);
  io::GgufWriter out_;
  std::map<std::string, Literal> tensors_;
  std::map<std::string, std::map<int64_t, Matrix>> experts_;
};

}  // namespace

bool has_gguf_form(const models::Config& c) { return !Form::name_of(c).empty(); }

void write_gguf_form(const models::Model& model, const std::string& path, bool older) {
  Form(model, older).write(path);
}

}  // namespace rlx::test
