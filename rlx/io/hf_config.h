// The JSON files of a Hugging Face model folder, as typed structs.
//
// Each struct names the fields most models share; the whole document stays in `json`, so fields it does not
// name are there for whoever knows them, and `to_json` writes them back. A field that is missing or null is
// empty; one of the wrong kind is a user error naming file and field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/base/json.h"

namespace rlx::io {

/// config.json
struct ModelConfig {
  std::optional<std::string> model_type;
  std::vector<std::string> architectures;
  std::optional<int64_t> vocab_size, hidden_size, intermediate_size;
  std::optional<int64_t> num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  std::optional<int64_t> max_position_embeddings, sliding_window;
  std::optional<int64_t> num_experts, num_experts_per_tok, moe_intermediate_size;
  std::optional<double> rms_norm_eps, layer_norm_eps, partial_rotary_factor;
  std::optional<double> attn_logit_softcapping, final_logit_softcapping, query_pre_attn_scalar;
  std::optional<bool> tie_word_embeddings, attention_bias, mlp_bias;
  std::vector<std::string> layer_types;
  std::optional<int64_t> bos_token_id, pad_token_id;
  std::vector<int64_t> eos_token_id;  // one or several in the file
  Json json;

  /// `hidden_act`, or `hidden_activation` as Gemma calls it.
  std::optional<std::string> activation() const;
  /// `dtype`, or `torch_dtype` in older files.
  std::optional<std::string> dtype() const;
  /// From `rope_parameters` (of one layer type where there are several), or `rope_theta` in older files.
  std::optional<double> rope_theta(std::string_view layer_type = {}) const;
};

/// generation_config.json
struct GenerationConfig {
  std::optional<int64_t> bos_token_id, pad_token_id;
  std::vector<int64_t> eos_token_id;
  std::optional<bool> do_sample;
  std::optional<int64_t> max_length, max_new_tokens, top_k;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  Json json;
};

/// A special token: in the files a plain string, or an object with its flags.
struct AddedToken {
  std::string content;
  bool lstrip = false, rstrip = false, single_word = false, normalized = false, special = true;

  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

/// special_tokens_map.json
struct SpecialTokens {
  std::optional<AddedToken> bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token;
  std::vector<AddedToken> additional_special_tokens;
  Json json;
};

/// tokenizer_config.json
struct TokenizerConfig {
  std::optional<std::string> tokenizer_class;
  std::optional<double> model_max_length;  // "no limit" is written as 1e30
  std::optional<bool> add_bos_token, add_eos_token, add_prefix_space, clean_up_tokenization_spaces,
      do_lower_case;
  SpecialTokens special;
  std::map<int64_t, AddedToken> added_tokens_decoder;
  std::map<std::string, std::string> chat_templates;  // a single one is called "default"
  Json json;
};

// The fields of a document; one of another type than it should have is a user error.
ModelConfig read_model_config(const Json&);
GenerationConfig read_generation_config(const Json&);
TokenizerConfig read_tokenizer_config(const Json&);
SpecialTokens read_special_tokens(const Json&);

/// The document with the typed fields put in place of what it had; all else as it was read.
std::string to_json(const ModelConfig&);
std::string to_json(const GenerationConfig&);

/// What a folder holds; files that are not there stay empty. `chat_template.jinja`, where present, is the
/// default chat template.
struct HfFolder {
  std::string path;
  std::optional<ModelConfig> config;
  std::optional<GenerationConfig> generation;
  std::optional<TokenizerConfig> tokenizer;
  std::optional<SpecialTokens> special_tokens;
  std::optional<std::string> tokenizer_json;  // its path

  /// Reads what is there of the files above; a missing folder is an environment error.
  static HfFolder open(const std::string& path);
};

}  // namespace rlx::io
