#include "rlx/models/config_source.h"

#include <algorithm>
#include <limits>

#include "rlx/models/config_defaults.h"

namespace rlx::models {
namespace {

// Fields of config.json that cannot change a result: training, generation, provenance, memory.
constexpr std::string_view kHarmless[] = {"_name_or_path",
                                          "_commit_hash",
                                          "architectures",
                                          "model_type",
                                          "transformers_version",
                                          "torch_dtype",
                                          "dtype",
                                          "use_cache",
                                          "auto_map",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "cls_token_id",
                                          "sep_token_id",
                                          "mask_token_id",
                                          "unk_token_id",
                                          "decoder_start_token_id",
                                          "initializer_range",
                                          "initializer_factor",
                                          "initializer_cutoff_factor",
                                          "attention_dropout",
                                          "hidden_dropout",
                                          "attention_probs_dropout_prob",
                                          "hidden_dropout_prob",
                                          "classifier_dropout",
                                          "embd_pdrop",
                                          "attn_pdrop",
                                          "resid_pdrop",
                                          "dropout",
                                          "qa_dropout",
                                          "seq_classif_dropout",
                                          "embedding_dropout",
                                          "mlp_dropout",
                                          "classifier_activation",
                                          "classifier_bias",
                                          "classifier_pooling",
                                          "decoder_bias",
                                          "deterministic_flash_attn",
                                          "sparse_pred_ignore_index",
                                          "sparse_prediction",
                                          "reference_compile",
                                          "repad_logits_with_grad",
                                          "gradient_checkpointing",
                                          "pretraining_tp",
                                          "ep_size",
                                          "aux_loss_alpha",
                                          "seq_aux",
                                          "router_aux_loss_coef",
                                          "router_jitter_noise",
                                          "output_router_logits",
                                          "use_mambapy",
                                          "use_associative_scan",
                                          "rescale_prenorm_residual",
                                          "residual_in_fp32",
                                          "time_step_floor",
                                          "time_step_init_scheme",
                                          "time_step_max",
                                          "time_step_min",
                                          "time_step_scale",
                                          "num_logits_to_keep",
                                          "mamba_chunk_size",
                                          "chunk_size",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "task_specific_params",
                                          "id2label",
                                          "label2id",
                                          "finetuning_task",
                                          "problem_type",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "return_dict",
                                          "is_decoder_only",
                                          "_attn_implementation",
                                          "_attn_implementation_autoset",
                                          "attn_implementation",
                                          "use_flash_attn",
                                          "max_length",
                                          "do_sample",
                                          "temperature",
                                          "top_p",
                                          "top_k",
                                          "keys_to_ignore_at_inference",
                                          "unsloth_fixed",
                                          "unsloth_version",
                                          "mlp_bias",
                                          "attention_bias",
                                          "qkv_bias",
                                          "projectors_bias",
                                          "mamba_conv_bias",
                                          "mamba_proj_bias",
                                          "use_bias",
                                          "use_conv_bias",
                                          "norm_bias",
                                          "transformers.js_config",
                                          "output_past",
                                          "is_llama_config",
                                          "tokenizer_class",
                                          "language",
                                          "hidden_act_dropout",
                                          "fused_rms_norm",
                                          "fused_mlp",
                                          "fused_bias_fc",
                                          "use_flash_attention_2",
                                          "pad_vocab_size_multiple",
                                          "fused_add_norm",
                                          "cache_implementation",
                                          "use_mamba_kernels"};

// Keys of GGUF that cannot change a result: pooling is asked for by whoever embeds, the layout says who wrote the file.
constexpr std::string_view kHarmlessKeys[] = {"vocab_size",      "pooling_type",     "tensor_data_layout",
                                              "dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in",
                                              "dense_3_feat_out"};

bool harmless(std::string_view key) {
  return std::find(std::begin(kHarmless), std::end(kHarmless), key) != std::end(kHarmless);
}

// Calls f(word) for each of the words until it returns true.
template <class F>
void each_word(std::string_view words, F f) {
  while (!words.empty()) {
    const size_t at = words.find('|');
    if (f(words.substr(0, at))) return;
    words = at == std::string_view::npos ? std::string_view() : words.substr(at + 1);
  }
}

}  // namespace

double json_real(JsonView v) {
  if (!v.is_object()) return v.real();
  const std::string_view text = v.at("__float__").string();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  throw v.error("is the number '", text, "'; Infinity or -Infinity expected");
}

ConfigSource::ConfigSource(const io::ModelFile& file) : file_(file), architecture_(file.architecture()) {
  if (file.folder && file.folder->config) config_ = file.folder->config->json;
  if (!is_gguf() && !config_.is_object()) {
    throw invalid(where(), "there is no config.json beside the tensors; give the folder of the model");
  }
  if (is_gguf()) return;
  const auto text = config_.find("text_config");
  const auto type = text && text->is_object() ? text->find("model_type") : std::nullopt;
  if (type) {
    architecture_ = type->string();
    is_text_part_ = true;
    config_ = config_.keep(*text);
  }
  defaults_ = Json::parse_in_place(default_config(architecture_), "what transformers assumes");
}

std::string ConfigSource::where() const { return cat("model '", file_.path, "': "); }

const io::TensorView* ConfigSource::find_tensor(std::string_view name) const {
  for (const io::TensorView& t : file_.tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

std::string ConfigSource::name_of(Field f) const {
  if (is_gguf()) return cat(architecture_, ".", f.gguf.substr(0, f.gguf.find('|')));
  return std::string(f.hf.substr(0, f.hf.find('|')));
}

std::optional<JsonView> ConfigSource::find_json(std::string_view words) {
  std::optional<JsonView> found, assumed;
  bool told = false;  // null is an answer, too
  each_word(words, [&](std::string_view word) {
    used_.emplace(word);
    for (const auto [key, value] : config_.members()) told = told || key == word;
    if (!found) found = config_.find(word);
    if (!assumed) assumed = defaults_.find(word);
    return false;
  });
  return told ? found : assumed;
}

const io::GgufValue* ConfigSource::find_gguf(std::string_view key) {
  const io::GgufValue* found = nullptr;
  each_word(key, [&](std::string_view word) {
    const std::string full = cat(architecture_, ".", word);
    used_.insert(full);
    if (found == nullptr) found = file_.gguf->find(full);
    return false;
  });
  return found;
}

// A number may be told for each layer.
int64_t ConfigSource::one_for_all(Field f, const io::GgufValue& v) const {
  const std::vector<int64_t> all = v.integers();
  if (all.empty()) throw invalid(where(), "'", name_of(f), "' is an empty list; a number expected");
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] != all[0])
      throw invalid(where(), "'", name_of(f), "' is ", all[0], " for layer 0 and ", all[i], " for layer ", i,
                    "; one number for all layers expected");
  }
  return all[0];
}

std::optional<int64_t> ConfigSource::find_integer(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    if (v && v->type() == io::GgufType::array) return one_for_all(f, *v);
    return v ? std::optional(v->integer()) : std::nullopt;
  }
  const auto v = find_json(f.hf);
  return v ? std::optional(v->integer()) : std::nullopt;
}

std::optional<double> ConfigSource::find_real(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    return v ? std::optional(v->real()) : std::nullopt;
  }
  const auto v = find_json(f.hf);
  return v ? std::optional(json_real(*v)) : std::nullopt;
}

std::optional<bool> ConfigSource::find_flag(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    return v ? std::optional(v->boolean()) : std::nullopt;
  }
  const auto v = find_json(f.hf);
  return v ? std::optional(v->boolean()) : std::nullopt;
}

std::optional<std::string> ConfigSource::find_text(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    return v ? std::optional<std::string>(v->string()) : std::nullopt;
  }
  const auto v = find_json(f.hf);
  return v ? std::optional<std::string>(v->string()) : std::nullopt;
}

std::vector<int64_t> ConfigSource::integers(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    return v ? v->integers() : std::vector<int64_t>();
  }
  std::vector<int64_t> out;
  if (const auto v = find_json(f.hf)) {
    if (!v->is_array()) return {v->integer()};
    for (const JsonView item : v->items()) out.push_back(item.integer());
  }
  return out;
}

std::vector<bool> ConfigSource::flags(Field f) {
  std::vector<bool> out;
  const io::GgufValue* v = is_gguf() ? find_gguf(f.gguf) : nullptr;
  if (v == nullptr || v->type() != io::GgufType::array) return out;
  for (const io::GgufValue& e : v->elements()) out.push_back(e.is_integer() ? e.integer() != 0 : e.boolean());
  return out;
}

std::vector<double> ConfigSource::reals(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    return v ? v->reals() : std::vector<double>();
  }
  std::vector<double> out;
  if (const auto v = find_json(f.hf)) {
    for (const JsonView item : v->items()) out.push_back(json_real(item));
  }
  return out;
}

std::vector<std::string> ConfigSource::texts(Field f) {
  std::vector<std::string> out;
  if (is_gguf()) return out;
  if (const auto v = find_json(f.hf)) {
    for (const JsonView item : v->items()) out.emplace_back(item.string());
  }
  return out;
}

int64_t ConfigSource::integer(Field f) {
  if (const auto v = find_integer(f)) return *v;
  throw invalid(where(), "the configuration has no '", name_of(f), "'");
}

double ConfigSource::real(Field f) {
  if (const auto v = find_real(f)) return *v;
  throw invalid(where(), "the configuration has no '", name_of(f), "'");
}

std::optional<JsonView> ConfigSource::object(std::string_view hf) {
  return is_gguf() ? std::nullopt : find_json(hf);
}

void ConfigSource::require_flag(Field f, bool value) {
  const auto v = find_flag(f);
  if (v && *v != value)
    throw invalid(where(), "'", name_of(f), "' is ", *v, "; only ", value, " is understood");
}

void ConfigSource::require_text(Field f, std::string_view value) {
  const auto v = find_text(f);
  if (v && *v != value)
    throw invalid(where(), "'", name_of(f), "' is '", *v, "'; only '", value, "' is understood");
}

void ConfigSource::require_none(Field f) {
  if (is_gguf()) {
    const io::GgufValue* v = find_gguf(f.gguf);
    if (v == nullptr || (v->is_integer() && v->integer() == 0) || (v->is_real() && v->real() == 0)) return;
    if (v->type() == io::GgufType::bool_ && !v->boolean()) return;
  } else {
    const auto v = find_json(f.hf);
    if (!v || (v->is_number() && v->real() == 0) || (v->kind() == JsonKind::boolean && !v->boolean())) return;
    if ((v->is_array() || v->is_object()) && v->size() == 0) return;
  }
  throw invalid(where(), "'", name_of(f), "' is set, and what it does is not understood");
}

void ConfigSource::ignore(std::string_view hf_words) {
  each_word(hf_words, [&](std::string_view word) {
    used_.emplace(word);
    return false;
  });
}

void ConfigSource::finish() {
  std::vector<std::string> unknown;
  if (is_gguf()) {
    const std::string prefix = architecture_ + ".";
    for (const io::GgufEntry& e : file_.gguf->entries()) {
      if (!e.key.starts_with(prefix) || used_.contains(e.key)) continue;
      const std::string_view word = e.key.substr(prefix.size());
      if (std::find(std::begin(kHarmlessKeys), std::end(kHarmlessKeys), word) == std::end(kHarmlessKeys))
        unknown.emplace_back(e.key);
    }
  } else {
    for (const auto [key, value] : config_.members()) {
      if (!value.is_null() && !used_.contains(key) && !harmless(key)) unknown.emplace_back(key);
    }
  }
  if (unknown.empty()) return;
  throw invalid(where(), "the configuration has ", unknown.size() == 1 ? "the field " : "fields ",
                join(unknown), ", not understood for architecture '", architecture_,
                "'; a field that might change the result is not ignored");
}

}  // namespace rlx::models
