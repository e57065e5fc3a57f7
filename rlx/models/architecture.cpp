#include "rlx/models/architecture.h"

#include <algorithm>

namespace rlx::models {

std::span<const Architecture* const> architectures() {
  static constexpr const Architecture* kAll[] = {
      &kBert,    &kDeepseek2,  &kDeepseek3, &kDistilbert, &kFalconH1, &kGemma2,   &kGemma3,
      &kGpt2,    &kGptNeox,    &kGranite,   &kLlama,      &kMamba,    &kMamba2,   &kMistral,
      &kMixtral, &kModernbert, &kOlmo2,     &kPhi3,       &kQwen2,    &kQwen2Moe, &kQwen3,
      &kQwen35,  &kQwen3Moe,   &kQwen3Next, &kRoberta};
  return kAll;
}

const Architecture& architecture_of(const ConfigSource& s) {
  std::vector<std::string> known;
  for (const Architecture* a : architectures()) {
    const auto words = s.is_gguf() ? a->gguf : a->hf;
    const bool other = s.is_gguf() && a->is_of != nullptr && !a->is_of(*s.file().gguf);
    for (const std::string_view word : words) {
      known.emplace_back(word);
      if (word == s.architecture() && !other) return *a;
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw invalid(s.where(), "architecture '", s.architecture(), "' is not known",
                s.is_gguf() ? " as GGUF" : "", "; known: ", join(known));
}

Activation activation_named(const ConfigSource& s, std::string_view word) {
  if (const Activation found = find_activation(word)) return found;
  throw invalid(s.where(), "activation '", word, "' is not known; known: ", activation_words());
}

namespace {

int64_t vocabulary(ConfigSource& s) {
  if (const auto v = s.find_integer({"vocab_size", "vocab_size"})) return *v;
  const io::TensorView* t = s.find_tensor("token_embd.weight");
  if (t == nullptr || t->dims.size() != 2) throw invalid(s.where(), "the size of the vocabulary is not told");
  return t->dims[0];
}

void read_ends(ConfigSource& s, Config& c) {
  if (!s.is_gguf()) {
    c.bos = s.find_integer({"bos_token_id"});
    c.eos = s.integers({"eos_token_id"});
    if (const auto& g = s.file().folder->generation; g && !g->eos_token_id.empty()) c.eos = g->eos_token_id;
    return;
  }
  const io::GgufFile& f = *s.file().gguf;
  if (const auto* v = f.find("tokenizer.ggml.bos_token_id")) c.bos = v->integer();
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    if (const auto* v = f.find(cat("tokenizer.ggml.", key))) c.eos.push_back(v->integer());
  }
}

}  // namespace

void read_decoder(ConfigSource& s, Config& c) {
  c.vocab = vocabulary(s);
  c.hidden = s.integer({"hidden_size|n_embd", "embedding_length"});
  c.layers = s.integer({"num_hidden_layers|n_layer", "block_count"});
  c.draft_layers = s.find_integer({"", "nextn_predict_layers"}).value_or(0);
  c.layers -= c.draft_layers;  // GGUF counts them, folders do not
  c.max_positions =
      s.find_integer({"max_position_embeddings|n_positions|n_ctx", "context_length"}).value_or(0);
  c.heads = s.find_integer({"num_attention_heads|n_head", "attention.head_count"}).value_or(0);
  c.kv_heads = s.find_integer({"num_key_value_heads", "attention.head_count_kv"}).value_or(c.heads);
  const auto lanes = s.find_integer({"head_dim", "attention.key_length"});
  c.head_dim = lanes ? *lanes : c.heads > 0 ? c.hidden / c.heads : 0;
  if (const auto v = s.find_integer({"", "attention.value_length"});
      v && c.latent.kv_rank == 0 && *v != c.head_dim)
    throw invalid(s.where(), "values have ", *v, " lanes and keys ", c.head_dim, "; equal numbers expected");
  c.intermediate = s.find_integer({"intermediate_size|n_inner", "feed_forward_length"}).value_or(0);
  c.norm_eps = s.find_real({"rms_norm_eps|layer_norm_eps|layer_norm_epsilon",
                            "attention.layer_norm_rms_epsilon|attention.layer_norm_epsilon"})
                   .value_or(c.norm_eps);
  // Where both words are there, as in Gemma, the longer one counts.
  if (const auto word = s.find_text({"hidden_activation|hidden_act|activation_function"}))
    c.activation = activation_named(s, *word);
  const bool head = s.has_tensor(s.is_gguf() ? "output.weight" : "lm_head.weight");
  c.tied = s.find_flag({"tie_word_embeddings"}).value_or(!head);
  if (s.is_gguf()) c.tied = !head;
  c.mixers.assign(size_t(std::max<int64_t>(c.layers, 0)), Mixer::attention);
  read_ends(s, c);
  if (c.hidden <= 0 || c.layers < 0 || c.vocab <= 0 || c.heads < 0 || c.kv_heads < 0 || c.head_dim < 0)
    throw invalid(s.where(), "sizes must be positive: vocabulary ", c.vocab, ", hidden ", c.hidden,
                  ", layers ", c.layers, ", heads ", c.heads);
  if (c.kv_heads > 0 && c.heads % c.kv_heads != 0)
    throw invalid(s.where(), c.kv_heads, " heads of keys do not divide ", c.heads, " heads");
}

void read_layer_types(ConfigSource& s, Config& c, Mixer rest) {
  const auto words = s.texts({"layer_types"});
  c.mixers.assign(size_t(c.layers), rest);
  if (!words.empty() && int64_t(words.size()) != c.layers)
    throw invalid(s.where(), "layer_types has ", words.size(), " entries for ", c.layers, " layers");
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "full_attention") {
      c.mixers[i] = Mixer::attention;
    } else if (words[i] == "sliding_attention") {
      c.mixers[i] = Mixer::window;
    } else if (words[i] == "linear_attention") {
      c.mixers[i] = Mixer::linear;
    } else {
      throw invalid(s.where(), "layer type '", words[i],
                    "' is not known; known: full_attention, sliding_attention, linear_attention");
    }
  }
  if (c.window <= 0 && std::count(c.mixers.begin(), c.mixers.end(), Mixer::window) > 0)
    throw invalid(s.where(), "layers have a sliding window, and 'sliding_window' does not tell its size");
}

}  // namespace rlx::models
