#include "rlx/io/model_text.h"

#include "rlx/base/error.h"
#include "rlx/base/utf8.h"
#include "rlx/io/hf_config.h"
#include "rlx/io/model_file.h"
#include "rlx/text/vocab_spec.h"

namespace rlx::io {

namespace {

std::optional<text::TokenId> find_id(const GgufFile& file, std::string_view key) {
  const GgufValue* v = file.find(key);
  if (!v) return std::nullopt;
  const int64_t id = v->integer();
  if (id < 0 || id > text::kMaxTokenId) throw invalid("gguf: ", key, " is ", id, ", which is no token id");
  return text::TokenId(id);
}

std::optional<bool> find_flag(const GgufFile& file, std::string_view key) {
  const GgufValue* v = file.find(key);
  return v ? std::optional(v->boolean()) : std::nullopt;
}

ModelTemplate template_of(const GgufFile& file, const std::string& name) {
  ModelTemplate t;
  t.source = file.at(name.empty() ? "tokenizer.chat_template" : "tokenizer.chat_template." + name).string();
  const auto* tokens = file.find("tokenizer.ggml.tokens");
  const auto spelled = [&](std::string_view key) -> std::string {
    const auto id = find_id(file, key);
    if (!id || !tokens) return {};
    const auto all = tokens->strings();
    if (size_t(*id) >= all.size())
      throw invalid("gguf: ", key, " is ", *id, ", beyond the ", all.size(), " tokens");
    return std::string(all[size_t(*id)]);
  };
  t.bos_token = spelled("tokenizer.ggml.bos_token_id");
  t.eos_token = spelled("tokenizer.ggml.eos_token_id");
  return t;
}

ModelTemplate template_of(const HfFolder& folder, const std::string& name) {
  if (!folder.tokenizer)
    throw invalid(folder.path, ": the folder has no tokenizer_config.json or chat_template.jinja");
  const auto& templates = folder.tokenizer->chat_templates;
  const auto found = templates.find(name.empty() ? "default" : name);
  if (found == templates.end()) {
    std::vector<std::string> names;
    for (const auto& [known, source] : templates) names.push_back(known);
    throw invalid(folder.path, ": no chat template named '", name.empty() ? "default" : name,
                  "'; there are: ", names.empty() ? "none" : join(names));
  }
  ModelTemplate t{found->second, "", ""};
  const auto spelled = [&](const auto& from_config, const auto& from_map) {
    if (from_config) return from_config->content;
    return from_map ? from_map->content : std::string();
  };
  const SpecialTokens none;
  const SpecialTokens& map = folder.special_tokens ? *folder.special_tokens : none;
  t.bos_token = spelled(folder.tokenizer->special.bos_token, map.bos_token);
  t.eos_token = spelled(folder.tokenizer->special.eos_token, map.eos_token);
  return t;
}

}  // namespace

text::VocabSpec vocabulary(const GgufFile& file) {
  text::VocabSpec spec;
  spec.model = file.at("tokenizer.ggml.model").string();
  if (const auto* v = file.find("tokenizer.ggml.pre")) spec.pre = v->string();
  if (const auto* v = file.find("general.name")) spec.name = v->string();
  if (const auto* v = file.find("general.architecture")) spec.architecture = v->string();
  for (const std::string_view token : file.at("tokenizer.ggml.tokens").strings())
    spec.tokens.emplace_back(token);
  if (const auto* v = file.find("tokenizer.ggml.scores"))
    for (const double s : v->reals()) spec.scores.push_back(float(s));
  if (const auto* v = file.find("tokenizer.ggml.token_type")) {
    for (const int64_t t : v->integers()) {
      if (t < 0 || t > 6) throw invalid("gguf: token type ", t, " is unknown");
      spec.types.push_back(text::TokenType(t == 0 ? 1 : int32_t(t)));
    }
  }
  if (const auto* v = file.find("tokenizer.ggml.merges"))
    for (const std::string_view merge : v->strings()) spec.merges.emplace_back(merge);
  spec.bos = find_id(file, "tokenizer.ggml.bos_token_id");
  spec.eos = find_id(file, "tokenizer.ggml.eos_token_id");
  spec.unknown = find_id(file, "tokenizer.ggml.unknown_token_id");
  spec.separator = find_id(file, "tokenizer.ggml.seperator_token_id");  // spelled so in the format
  spec.padding = find_id(file, "tokenizer.ggml.padding_token_id");
  spec.cls = find_id(file, "tokenizer.ggml.cls_token_id");
  spec.add_bos = find_flag(file, "tokenizer.ggml.add_bos_token");
  spec.add_eos = find_flag(file, "tokenizer.ggml.add_eos_token");
  spec.add_separator = find_flag(file, "tokenizer.ggml.add_sep_token");
  spec.lowercase = find_flag(file, "tokenizer.ggml.normalizer.lowercase").value_or(true);
  spec.strip_accents = find_flag(file, "tokenizer.ggml.normalizer.strip_accents");
  spec.add_space_prefix = find_flag(file, "tokenizer.ggml.add_space_prefix").value_or(true);
  spec.remove_extra_spaces = find_flag(file, "tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  if (const auto* v = file.find("tokenizer.ggml.precompiled_charsmap"))
    for (const int64_t byte : v->integers()) spec.charsmap.push_back(char(byte));
  return spec;
}

text::Tokenizer ModelFile::tokenizer() const {
  if (gguf) return text::make_tokenizer(vocabulary(*gguf), path);
  if (folder) return text::Tokenizer::from_file(path);
  throw invalid("'", path, "' is a file of tensors (", format->name, ") and holds no tokenizer");
}

ModelTemplate ModelFile::chat_template(const std::string& name) const {
  if (gguf) return template_of(*gguf, name);
  if (folder) return template_of(*folder, name);
  throw invalid("'", path, "' is a file of tensors (", format->name, ") and holds no chat template");
}

text::Tokenizer load_tokenizer(const std::string& path) {
  const Input input = Input::open(path);
  // A folder need not have a model to have a tokenizer.
  if (input.is_folder() || !FormatTable::standard().recognise(input)) return text::Tokenizer::from_file(path);
  return ModelFile::open(input).tokenizer();
}

ModelTemplate load_chat_template(const std::string& path, const std::string& name) {
  constexpr size_t kMaxTemplate = size_t(1) << 26;
  const Input input = Input::open(path);
  if (input.is_folder()) return template_of(HfFolder::open(path), name);
  if (FormatTable::standard().recognise(input)) return ModelFile::open(input).chat_template(name);
  const std::string_view text = input.text();
  if (text.size() > kMaxTemplate)
    throw invalid("'", path, "' has ", text.size(), " bytes; a template has at most ", kMaxTemplate);
  if (!valid_utf8(text) || text.find('\0') != text.npos)
    throw invalid(
        path, ": not a chat template: the file is no text; give a GGUF file, a model folder or a template");
  return {std::string(text), "", ""};
}

}  // namespace rlx::io
