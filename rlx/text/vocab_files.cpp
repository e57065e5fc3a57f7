#include "rlx/text/vocab_files.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "rlx/text/bpe.h"
#include "rlx/text/json.h"
#include "rlx/text/located.h"
#include "rlx/text/tokenizer_parts.h"
#include "rlx/text/wordpiece.h"

namespace rlx::text {

namespace {

std::optional<Fields> read_sibling(const Siblings& siblings, std::string_view name) {
  const std::optional<std::string> bytes = siblings(name);
  if (!bytes) return std::nullopt;
  return Fields(parse_json(*bytes, name), std::string(name));
}

AddedToken read_flags(const Fields& f, bool special) {
  AddedToken t;
  t.content = f.string("content");
  t.single_word = f.boolean("single_word", false);
  t.left_strip = f.boolean("lstrip", false);
  t.right_strip = f.boolean("rstrip", false);
  t.special = f.boolean("special", special);
  t.normalized = f.boolean("normalized", !t.special);
  return t;
}

TokenId checked_id(int64_t id, const std::string& where) {
  constexpr int64_t kMost = 1 << 24;  // far above any published id; tables are as large as the largest
  if (id < 0 || id > kMost) throw invalid(where, ": token id ", id, " is not in 0..", kMost);
  return TokenId(id);
}

// The names of special tokens, in the order in which those without an id get one.
constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

/// What the files beside a vocabulary say.
struct Settings {
  std::optional<Fields> config;             // tokenizer_config.json
  std::vector<AddedToken> added;            // with ids
  std::map<std::string, AddedToken> roles;  // by kRoles; ids not set
  std::vector<AddedToken> further;          // additional_special_tokens; ids not set

  std::string content_of(const std::string& role, std::string_view otherwise) const {
    const auto found = roles.find(role);
    return found == roles.end() ? std::string(otherwise) : found->second.content;
  }
  bool flag(std::string_view key, bool otherwise) const {
    return config ? config->boolean(key, otherwise) : otherwise;
  }
};

// A token is its text, or an object with its text and flags.
AddedToken read_role(const Fields& f, std::string_view key) {
  const Value& v = f.at(key);
  if (!v.is_string()) return read_flags(f.object(key), true);
  AddedToken t;
  t.content = v.as_string();
  t.special = true;
  return t;
}

void read_roles(const Fields& f, Settings& settings) {
  for (const std::string_view role : kRoles)
    if (f.find(role)) settings.roles[std::string(role)] = read_role(f, role);
  if (!f.find("additional_special_tokens")) return;
  settings.further.clear();
  const List& list = f.list("additional_special_tokens");
  for (size_t i = 0; i < list.size(); ++i) {
    AddedToken t;
    t.special = true;
    if (list[i].is_string()) {
      t.content = list[i].as_string();
    } else {
      t = read_flags(Fields(list[i], cat(f.path("additional_special_tokens"), "[", i, "]")), true);
    }
    settings.further.push_back(std::move(t));
  }
}

std::vector<AddedToken> read_decoder_list(const Fields& config) {
  std::vector<AddedToken> out;
  if (!config.find("added_tokens_decoder")) return out;
  const Fields list = config.object("added_tokens_decoder");
  for (const auto& [key, value] : config.at("added_tokens_decoder").as_dict()) {
    const std::string& name = key.as_string();
    int64_t id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size())
      throw invalid(list.where(), ": '", name, "' is not a token id");
    AddedToken t = read_flags(list.object(name), false);
    t.id = checked_id(id, list.where());
    out.push_back(std::move(t));
  }
  return out;
}

Settings read_settings(const Siblings& siblings) {
  Settings settings;
  if (const auto map = read_sibling(siblings, "special_tokens_map.json")) read_roles(*map, settings);
  settings.config = read_sibling(siblings, "tokenizer_config.json");
  if (settings.config) {
    read_roles(*settings.config, settings);
    settings.added = read_decoder_list(*settings.config);
  }
  if (!settings.added.empty()) return settings;
  if (const std::optional<std::string> bytes = siblings("added_tokens.json")) {
    const Value list = parse_json(*bytes, "added_tokens.json");
    if (!list.is_dict()) throw invalid("added_tokens.json: expected an object, got ", list.kind_name());
    for (const auto& [key, value] : list.as_dict()) {
      if (!value.is_int())
        throw invalid("added_tokens.json: the id of '", key.as_string(), "' is not an integer");
      AddedToken t;
      t.content = key.as_string();
      t.id = checked_id(value.as_int(), "added_tokens.json");
      t.normalized = true;
      settings.added.push_back(std::move(t));
    }
  }
  return settings;
}

// All added tokens with their ids. A role that neither the vocabulary nor the lists know gets the next id.
std::vector<AddedToken> all_added(const Settings& settings, const Vocab& vocab) {
  std::vector<AddedToken> out = settings.added;
  int64_t next = int64_t(vocab.size());
  for (const AddedToken& t : out) next = std::max(next, int64_t(t.id) + 1);
  const auto add = [&](AddedToken t) {
    for (AddedToken& known : out) {
      if (known.content != t.content) continue;
      known.special = true;
      known.normalized &= t.normalized;
      return;
    }
    const auto id = vocab.find(t.content);
    t.id = id ? *id : TokenId(next++);
    out.push_back(std::move(t));
  };
  for (const std::string_view role : kRoles)
    if (const auto found = settings.roles.find(std::string(role)); found != settings.roles.end())
      add(found->second);
  for (const AddedToken& t : settings.further) add(t);
  return out;
}

TokenId id_of(std::string_view content, const std::vector<AddedToken>& added, const Vocab& vocab) {
  for (const AddedToken& t : added)
    if (t.content == content) return t.id;
  if (const auto id = vocab.find(content)) return *id;
  throw invalid("the token '", content, "' is not in the vocabulary");
}

// What a class of tokenizers does, in the words of tokenizer.json.
struct ClassRules {
  std::vector<std::string_view> names;  // tokenizer_class, without "Fast"
  std::string_view normalizer;
  std::string_view pre_tokenizer;
  std::string_view end_suffix;
  enum class Frame { none, roberta, bert } frame;
  std::vector<std::pair<std::string_view, std::string_view>> roles;  // that apply when no file names them
};

constexpr std::string_view kGpt2Words = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
constexpr std::string_view kQwen2Words =
    R"json({"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})json";
constexpr std::string_view kClipNormalizer =
    R"json({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]})json";
constexpr std::string_view kClipWords =
    R"json({"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Removed","invert":true,"pattern":{"Regex":"'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"}},
    {"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]})json";

const std::vector<ClassRules>& class_rules() {
  using Frame = ClassRules::Frame;
  static const std::vector<ClassRules> rules = {
      {{"GPT2Tokenizer", "CodeGenTokenizer", "WhisperTokenizer", "GPTNeoXTokenizer", "PhiTokenizer"},
       "",
       kGpt2Words,
       "",
       Frame::none,
       {{"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}}},
      {{"RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer", "MvpTokenizer"},
       "",
       kGpt2Words,
       "",
       Frame::roberta,
       {{"bos_token", "<s>"},
        {"eos_token", "</s>"},
        {"unk_token", "<unk>"},
        {"pad_token", "<pad>"},
        {"mask_token", "<mask>"}}},
      {{"DebertaTokenizer"},
       "",
       kGpt2Words,
       "",
       Frame::bert,
       {{"bos_token", "[CLS]"},
        {"eos_token", "[SEP]"},
        {"unk_token", "[UNK]"},
        {"pad_token", "[PAD]"},
        {"mask_token", "[MASK]"}}},
      {{"Qwen2Tokenizer"},
       R"({"type":"NFC"})",
       kQwen2Words,
       "",
       Frame::none,
       {{"eos_token", "<|endoftext|>"}}},
      {{"CLIPTokenizer"},
       kClipNormalizer,
       kClipWords,
       "</w>",
       Frame::bert,
       {{"bos_token", "<|startoftext|>"}, {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}}},
  };
  return rules;
}

const ClassRules& rules_of(const Settings& settings) {
  std::string name = settings.config ? settings.config->string("tokenizer_class", "") : "";
  if (name.empty()) name = class_rules()[0].names[0];
  std::string_view plain = name;
  if (plain.ends_with("Fast")) plain.remove_suffix(4);
  std::vector<std::string_view> known;
  for (const ClassRules& rules : class_rules()) {
    if (std::find(rules.names.begin(), rules.names.end(), plain) != rules.names.end()) return rules;
    known.insert(known.end(), rules.names.begin(), rules.names.end());
  }
  throw invalid("tokenizer_config.json.tokenizer_class: '", name,
                "' is not known for a vocab.json; known: ", join(known));
}

Vocab vocab_of_object(const Value& root) {
  Vocab vocab;
  const Dict& dict = root.as_dict();
  vocab.reserve(dict.size(), dict.size() * 8);
  for (const auto& [key, value] : dict) {
    if (!value.is_int()) throw invalid("the id of '", key.as_string(), "' is not an integer");
    if (value.as_int() < 0 || value.as_int() > int64_t(dict.size()) + 1'000'000)
      throw invalid("the id of '", key.as_string(), "' is ", value.as_int(), " and there are only ",
                    dict.size(), " tokens");
    if (!vocab.add(key.as_string(), TokenId(value.as_int())))
      throw invalid("the id ", value.as_int(), " of '", key.as_string(), "' is there twice");
  }
  return vocab;
}

std::vector<Merge> read_merges(std::string_view text, const Vocab& vocab) {
  std::vector<Merge> merges;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ', 1);
    if (space == line.npos || space + 1 == line.size() || line.find(' ', space + 1) != line.npos)
      throw invalid("merges.txt: line ", number, ": expected two tokens and a space between them");
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    const auto id = [&](std::string_view token) {
      if (const auto found = vocab.find(token)) return *found;
      throw invalid("merges.txt: line ", number, ": token '", token, "' is not in the vocabulary");
    };
    merges.push_back({id(left), id(right), id(cat(left, right)), uint32_t(merges.size())});
  }
  return merges;
}

void set_default_roles(Settings& settings, const ClassRules& rules, const Vocab& vocab) {
  for (const auto& [role, content] : rules.roles) {
    if (settings.roles.count(std::string(role)) || !vocab.find(content)) continue;
    AddedToken t;
    t.content = content;
    t.special = true;
    t.left_strip = content == "<mask>";  // a mask stands for a word and the space before it
    settings.roles[std::string(role)] = t;
  }
}

PostProcessorPtr frame_of(ClassRules::Frame frame, const Settings& settings,
                          const std::vector<AddedToken>& added, const Vocab& vocab) {
  using Frame = ClassRules::Frame;
  const auto id = [&](const std::string& role, const std::string& otherwise) {
    return id_of(settings.content_of(role, settings.content_of(otherwise, "")), added, vocab);
  };
  if (frame == Frame::none) {
    if (!settings.flag("add_bos_token", false)) return nullptr;
    const TokenId bos = id("bos_token", "bos_token");
    return make_frame({bos}, {bos}, {}, false);
  }
  const TokenId first = id("cls_token", "bos_token"), last = id("sep_token", "eos_token");
  if (frame == Frame::roberta) return make_frame({first}, {last, last}, {last}, false);
  return make_frame({first}, {last}, {last}, true);
}

TokenizerParts parts_of_vocab_json(const TokenizerFile& file) {
  const Value root = parse_json(file.bytes, file.name);
  if (!root.is_dict()) throw invalid("expected an object of token: id, got ", root.kind_name());
  const std::optional<std::string> merges_text = file.siblings("merges.txt");
  if (!merges_text)
    throw invalid("neither a tokenizer.json nor a vocabulary with merges: there is no merges.txt beside it");
  Settings settings = read_settings(file.siblings);
  const ClassRules& rules = rules_of(settings);
  Vocab vocab = vocab_of_object(root);
  const std::vector<Merge> merges = read_merges(*merges_text, vocab);
  set_default_roles(settings, rules, vocab);

  TokenizerParts parts;
  if (!rules.normalizer.empty())
    parts.normalizer = make_normalizer(parse_json(rules.normalizer, "normalizer"), "normalizer");
  parts.pretokenizer = make_pretokenizer(parse_json(rules.pre_tokenizer, "pre_tokenizer"), "pre_tokenizer");
  if (rules.pre_tokenizer == kGpt2Words && settings.flag("add_prefix_space", false))
    parts.pretokenizer = make_byte_level(true, true);
  parts.added = all_added(settings, vocab);
  parts.post_processor = frame_of(rules.frame, settings, parts.added, vocab);
  BpeOptions options;
  options.end_suffix = rules.end_suffix;
  if (options.end_suffix.empty()) {
    options.bytes = parts.pretokenizer->leave_bytes();
  } else {
    options.unknown = vocab.find(settings.content_of("unk_token", ""));
  }
  parts.decoder = make_byte_level_decoder();
  if (!rules.end_suffix.empty()) parts.decoder = make_suffix_decoder(std::string(rules.end_suffix));
  parts.model = std::make_unique<Bpe>(std::move(vocab), merges, std::move(options));
  return parts;
}

// vocab.txt: a token a line, the number of the line is its id.
Vocab vocab_of_lines(std::string_view text) {
  Vocab vocab;
  TokenId id = 0;
  for (size_t begin = 0; begin < text.size(); ++id) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (id == kMaxTokenId) throw invalid("more than ", kMaxTokenId, " tokens");
    if (!line.empty() && !vocab.add(line, id))
      throw invalid("line ", id + 1, ": the token '", line, "' is there twice");
  }
  return vocab;
}

TokenizerParts parts_of_vocab_txt(const TokenizerFile& file) {
  Settings settings = read_settings(file.siblings);
  Vocab vocab = vocab_of_lines(file.bytes);
  // MPNet has the vocabulary of BERT between the special tokens of RoBERTa.
  static const ClassRules bert{{},
                               "",
                               "",
                               "",
                               ClassRules::Frame::bert,
                               {{"unk_token", "[UNK]"},
                                {"sep_token", "[SEP]"},
                                {"pad_token", "[PAD]"},
                                {"cls_token", "[CLS]"},
                                {"mask_token", "[MASK]"}}};
  const std::string name = settings.config ? settings.config->string("tokenizer_class", "") : "";
  const bool mpnet = name.starts_with("MPNet");
  set_default_roles(settings, bert, vocab);
  TokenizerParts parts;
  const bool lowercase = settings.flag("do_lower_case", true);
  parts.normalizer = make_bert_normalizer(lowercase, settings.flag("strip_accents", lowercase),
                                          settings.flag("tokenize_chinese_chars", true));
  parts.pretokenizer = make_bert_pretokenizer();
  parts.added = all_added(settings, vocab);
  parts.post_processor =
      frame_of(mpnet ? ClassRules::Frame::roberta : ClassRules::Frame::bert, settings, parts.added, vocab);
  WordPieceOptions options;
  options.unknown_token = settings.content_of("unk_token", "[UNK]");
  parts.model = std::make_unique<WordPiece>(std::move(vocab), options);
  parts.decoder = make_wordpiece_decoder("##", true);
  return parts;
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Siblings& siblings) {
  const auto config = read_sibling(siblings, "tokenizer_config.json");
  return config ? read_decoder_list(*config) : std::vector<AddedToken>();
}

Tokenizer read_vocab_json(const TokenizerFile& file) {
  return located(file.where, [&] { return Tokenizer(parts_of_vocab_json(file)); });
}

Tokenizer read_vocab_txt(const TokenizerFile& file) {
  return located(file.where, [&] { return Tokenizer(parts_of_vocab_txt(file)); });
}

}  // namespace rlx::text
