#include "rlx/io/hf_config.h"

#include <charconv>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"

namespace rlx::io {
namespace {

// One list of fields per struct serves reading and writing.
template <class Config, class Visit>
  requires std::same_as<std::remove_const_t<Config>, ModelConfig>
void visit_fields(Config& c, Visit&& visit) {
  visit("model_type", c.model_type), visit("architectures", c.architectures);
  visit("vocab_size", c.vocab_size), visit("hidden_size", c.hidden_size);
  visit("intermediate_size", c.intermediate_size), visit("num_hidden_layers", c.num_hidden_layers);
  visit("num_attention_heads", c.num_attention_heads), visit("num_key_value_heads", c.num_key_value_heads);
  visit("head_dim", c.head_dim), visit("max_position_embeddings", c.max_position_embeddings);
  visit("sliding_window", c.sliding_window), visit("num_experts", c.num_experts);
  visit("num_experts_per_tok", c.num_experts_per_tok),
      visit("moe_intermediate_size", c.moe_intermediate_size);
  visit("rms_norm_eps", c.rms_norm_eps), visit("layer_norm_eps", c.layer_norm_eps);
  visit("partial_rotary_factor", c.partial_rotary_factor);
  visit("attn_logit_softcapping", c.attn_logit_softcapping);
  visit("final_logit_softcapping", c.final_logit_softcapping);
  visit("query_pre_attn_scalar", c.query_pre_attn_scalar);
  visit("tie_word_embeddings", c.tie_word_embeddings), visit("attention_bias", c.attention_bias);
  visit("mlp_bias", c.mlp_bias), visit("layer_types", c.layer_types);
  visit("bos_token_id", c.bos_token_id), visit("eos_token_id", c.eos_token_id),
      visit("pad_token_id", c.pad_token_id);
}

template <class Config, class Visit>
  requires std::same_as<std::remove_const_t<Config>, GenerationConfig>
void visit_fields(Config& c, Visit&& visit) {
  visit("bos_token_id", c.bos_token_id), visit("eos_token_id", c.eos_token_id),
      visit("pad_token_id", c.pad_token_id);
  visit("do_sample", c.do_sample), visit("max_length", c.max_length),
      visit("max_new_tokens", c.max_new_tokens);
  visit("top_k", c.top_k), visit("temperature", c.temperature), visit("top_p", c.top_p),
      visit("min_p", c.min_p);
  visit("typical_p", c.typical_p), visit("repetition_penalty", c.repetition_penalty);
}

template <class Config, class Visit>
  requires std::same_as<std::remove_const_t<Config>, TokenizerConfig>
void visit_fields(Config& c, Visit&& visit) {
  visit("tokenizer_class", c.tokenizer_class), visit("model_max_length", c.model_max_length);
  visit("add_bos_token", c.add_bos_token), visit("add_eos_token", c.add_eos_token);
  visit("add_prefix_space", c.add_prefix_space), visit("do_lower_case", c.do_lower_case);
  visit("clean_up_tokenization_spaces", c.clean_up_tokenization_spaces);
}

void convert(JsonView json, int64_t& out) { out = json.integer(); }
void convert(JsonView json, double& out) { out = json.real(); }
void convert(JsonView json, bool& out) { out = json.boolean(); }
void convert(JsonView json, std::string& out) { out = json.string(); }
void convert(JsonView json, AddedToken& out) {
  if (!json.is_object()) {
    out.content = json.string();
    return;
  }
  out.content = json.at("content").string();
  const auto flag = [&](const char* key, bool& to) {
    if (const auto value = json.find(key)) to = value->boolean();
  };
  flag("lstrip", out.lstrip), flag("rstrip", out.rstrip), flag("single_word", out.single_word);
  flag("normalized", out.normalized), flag("special", out.special);
}
template <class T>
void convert(JsonView json, std::optional<T>& out) {
  convert(json, out.emplace());
}
// A list, or one value standing for a list of one.
template <class T>
void convert(JsonView json, std::vector<T>& out) {
  if (!json.is_array()) {
    convert(json, out.emplace_back());
    return;
  }
  for (const JsonView item : json.items()) convert(item, out.emplace_back());
}

template <class Config>
void read_fields(const Json& json, Config& out) {
  visit_fields(out, [&](const char* key, auto& field) {
    if (const auto value = json.find(key)) convert(*value, field);
  });
  out.json = json;
}

template <class T>
bool is_set(const std::optional<T>& field) {
  return field.has_value();
}
template <class T>
bool is_set(const std::vector<T>& field) {
  return !field.empty();
}

template <class T>
void write_field(JsonWriter& out, const std::optional<T>& field, JsonView) {
  field ? out.value(*field) : out.null();
}
// One value that stood for a list of one stays one value.
template <class T>
void write_field(JsonWriter& out, const std::vector<T>& field, JsonView before) {
  if (field.empty()) return out.null();
  if (field.size() == 1 && !before.is_array() && std::is_arithmetic_v<T>) return out.value(field[0]);
  out.value(field);
}

// Whether the document says the same as the field; an empty list and null are both nothing.
template <class Field>
bool says_the_same(JsonView value, const Field& field) {
  if (value.is_null() || (value.is_array() && value.size() == 0)) return !is_set(field);
  Field read;
  convert(value, read);
  return read == field;
}

bool has_key(JsonView object, std::string_view key) {
  for (const auto [name, value] : object.members()) {
    if (name == key) return true;
  }
  return false;
}

// Members keep their place and, where nothing changed, their spelling: 256 does not become 256.0.
template <class Config>
std::string write_fields(const Config& config) {
  JsonWriter out({.indent = 2, .python_numbers = true});
  out.begin_object();
  if (config.json.is_object()) {
    for (const auto [key, value] : config.json.members()) {
      out.key(key);
      bool written = false;
      visit_fields(config, [&, name = key, before = value](const char* known, const auto& field) {
        if (name != known || says_the_same(before, field)) return;
        write_field(out, field, before);
        written = true;
      });
      if (!written) out.value(value);
    }
  }
  visit_fields(config, [&](const char* key, const auto& field) {
    if (!is_set(field) || (config.json.is_object() && has_key(config.json, key))) return;
    out.key(key);
    write_field(out, field, {});
  });
  out.end_object();
  return out.take();
}

template <class T>
std::optional<T> optional_field(JsonView json, std::string_view key) {
  std::optional<T> out;
  if (!json.is_object()) return out;
  if (const auto value = json.find(key)) convert(*value, out);
  return out;
}

}  // namespace

std::optional<std::string> ModelConfig::activation() const {
  const auto act = optional_field<std::string>(json, "hidden_act");
  return act ? act : optional_field<std::string>(json, "hidden_activation");
}

std::optional<std::string> ModelConfig::dtype() const {
  const auto name = optional_field<std::string>(json, "dtype");
  return name ? name : optional_field<std::string>(json, "torch_dtype");
}

std::optional<double> ModelConfig::rope_theta(std::string_view layer_type) const {
  if (!json.is_object()) return std::nullopt;
  if (const auto parameters = json.find("rope_parameters")) {
    const auto of_layer = layer_type.empty() ? std::nullopt : parameters->find(layer_type);
    if (const auto theta = optional_field<double>(of_layer ? *of_layer : *parameters, "rope_theta"))
      return theta;
  }
  return optional_field<double>(json, "rope_theta");
}

ModelConfig read_model_config(const Json& json) {
  ModelConfig out;
  read_fields(json, out);
  return out;
}

GenerationConfig read_generation_config(const Json& json) {
  GenerationConfig out;
  read_fields(json, out);
  return out;
}

SpecialTokens read_special_tokens(const Json& json) {
  SpecialTokens out;
  const auto token = [&](const char* key, auto& field) {
    if (const auto value = json.find(key)) convert(*value, field);
  };
  token("bos_token", out.bos_token), token("eos_token", out.eos_token), token("unk_token", out.unk_token);
  token("sep_token", out.sep_token), token("pad_token", out.pad_token), token("cls_token", out.cls_token);
  token("mask_token", out.mask_token), token("additional_special_tokens", out.additional_special_tokens);
  out.json = json;
  return out;
}

TokenizerConfig read_tokenizer_config(const Json& json) {
  TokenizerConfig out;
  read_fields(json, out);
  out.special = read_special_tokens(json);
  if (const auto added = json.find("added_tokens_decoder")) {
    for (const auto [key, token] : added->members()) {
      int64_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0)
        throw added->error("has the key '", key, "'; a token id expected");
      convert(token, out.added_tokens_decoder[id]);
    }
  }
  if (const auto chat = json.find("chat_template")) {
    if (chat->is_array()) {
      for (const JsonView item : chat->items()) {
        out.chat_templates[std::string(item.at("name").string())] = item.at("template").string();
      }
    } else {
      out.chat_templates["default"] = chat->string();
    }
  }
  return out;
}

std::string to_json(const ModelConfig& config) { return write_fields(config); }
std::string to_json(const GenerationConfig& config) { return write_fields(config); }

HfFolder HfFolder::open(const std::string& path) {
  if (path_kind(path) != PathKind::folder) throw environment_error("folder: '", path, "' is not a folder");
  HfFolder out;
  out.path = path;
  const auto file = [&](const char* name) -> std::optional<std::string> {
    const std::string full = path + "/" + name;
    return path_kind(full) == PathKind::missing ? std::nullopt : std::optional(full);
  };
  // Python writes NaN and Infinity into such files, as in the time_step_limit of Mamba-2.
  const auto json = [](const std::string& name) { return Json::read(name, {.python_numbers = true}); };
  if (const auto f = file("config.json")) out.config = read_model_config(json(*f));
  if (const auto f = file("generation_config.json")) out.generation = read_generation_config(json(*f));
  if (const auto f = file("tokenizer_config.json")) out.tokenizer = read_tokenizer_config(json(*f));
  if (const auto f = file("special_tokens_map.json")) out.special_tokens = read_special_tokens(json(*f));
  if (const auto f = file("chat_template.jinja")) {
    if (!out.tokenizer) out.tokenizer.emplace();
    out.tokenizer->chat_templates["default"] = read_file(*f, uint64_t(1) << 24);
  }
  out.tokenizer_json = file("tokenizer.json");
  return out;
}

}  // namespace rlx::io
