// tokenizer.json of Hugging Face tokenizers. The vocabulary and the merges, which are most of the file, are
// read straight from the document; the small objects become values and go to the file of their
// component.
#include <charconv>
#include <cmath>

#include "rlx/base/error.h"
#include "rlx/text/bpe.h"
#include "rlx/text/json.h"
#include "rlx/text/tokenizer_parts.h"
#include "rlx/text/unigram.h"
#include "rlx/text/word_level.h"
#include "rlx/text/wordpiece.h"

namespace rlx::text {

namespace {

TokenId checked_id(int64_t id, const std::string& where) {
  if (id < 0 || id > kMaxTokenId) throw invalid(where, ": token id ", id, " is not in 0..", kMaxTokenId);
  return TokenId(id);
}
// Of an integer of any size.
TokenId checked_id(JsonView id, const std::string& where) {
  if (!(std::abs(id.real()) <= double(kMaxTokenId)))
    throw invalid(where, ": token id ", id.text(), " is not in 0..", kMaxTokenId);
  return checked_id(id.integer(), where);
}

Vocab read_vocab_object(JsonView model, const std::string& where, size_t file_size) {
  const auto object = model.find("vocab");
  if (!object || !object->is_object()) throw invalid(where, ".vocab: expected an object of token: id");
  Vocab vocab;
  size_t count = 0, bytes = 0;
  int64_t largest = 0;
  for (const auto [token, id] : object->members()) {
    if (id.kind() != JsonKind::integer)
      throw invalid(where, ".vocab: the id of '", token, "' is not an integer");
    largest = std::max<int64_t>(largest, checked_id(id, where + ".vocab"));
    bytes += token.size();
    ++count;
  }
  if (size_t(largest) > file_size + 1'000'000)
    throw invalid(where, ".vocab: the largest id is ", largest, " and there are only ", count, " tokens");
  vocab.reserve(count, bytes);
  for (const auto [token, number] : object->members()) {
    const auto id = TokenId(number.integer());
    if (!vocab.add(token, id))
      throw invalid(where, ".vocab: token '", token, "' or its id ", id, " is there twice");
  }
  return vocab;
}

// A merge is "left right" or ["left", "right"].
std::pair<std::string_view, std::string_view> read_pair(JsonView item, const std::string& where,
                                                        size_t index) {
  if (item.is_string()) {
    const std::string_view line = item.string();
    const size_t space = line.find(' ');
    if (space != line.npos && space > 0 && space + 1 < line.size() && line.find(' ', space + 1) == line.npos)
      return {line.substr(0, space), line.substr(space + 1)};
  } else if (item.is_array() && item.size() == 2) {
    const JsonView left = item.at(0), right = item.at(1);
    if (left.is_string() && right.is_string()) return {left.string(), right.string()};
  }
  throw invalid(where, ".merges[", index, "]: expected two tokens");
}

std::unique_ptr<Model> read_bpe(JsonView model, const Fields& f, PreTokenizer* pretokenizer,
                                size_t file_size) {
  const std::string& where = f.where();
  Vocab vocab = read_vocab_object(model, where, file_size);
  BpeOptions options;
  options.continuing_prefix = f.string("continuing_subword_prefix", "");
  options.end_suffix = f.string("end_of_word_suffix", "");
  options.fuse_unknown = f.boolean("fuse_unk", false);
  options.byte_fallback = f.boolean("byte_fallback", false);
  options.ignore_merges = f.boolean("ignore_merges", false);
  if (const Value* dropout = f.find("dropout");
      dropout && !(dropout->is_number() && dropout->as_double() == 0))
    throw invalid(where, ".dropout: encoding with dropout is random and not supported; set it to null");
  if (f.find("unk_token")) {
    options.unknown = vocab.find(f.string("unk_token"));
    if (!options.unknown) options.missing_unknown = f.string("unk_token");
  }
  const auto list = model.find("merges");
  if (!list || !list->is_array()) throw invalid(where, ".merges: expected a list");
  std::vector<Merge> merges;
  merges.reserve(list->size());
  std::string joined;
  for (const JsonView item : list->items()) {
    const size_t index = merges.size();
    const auto [left, right] = read_pair(item, where, index);
    const auto id = [&](std::string_view token) {
      const auto found = vocab.find(token);
      if (!found) throw invalid(where, ".merges[", index, "]: token '", token, "' is not in the vocabulary");
      return *found;
    };
    joined.assign(left).append(right.substr(std::min(right.size(), options.continuing_prefix.size())));
    merges.push_back({id(left), id(right), id(joined), uint32_t(index)});
  }
  const bool affixes = !options.continuing_prefix.empty() || !options.end_suffix.empty();
  if (pretokenizer && !affixes && !options.byte_fallback) options.bytes = pretokenizer->leave_bytes();
  return std::make_unique<Bpe>(std::move(vocab), merges, std::move(options));
}

// The reference reads a decimal as the integer of its digits, rounded to a double, over a power of ten,
// rounded again: the last bit can differ from the nearest double. Segmentations of equal score are told apart
// by that bit, so the same ids need the same rounding. Files hold the shortest form of a score, which gives
// its digits back.
double as_the_reference_reads(double nearest) {
  char text[40];
  const char* const end =
      std::to_chars(text, text + sizeof text, std::abs(nearest), std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  const char* at = text;
  for (bool fraction = false; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      fraction = true;
    } else {
      digits = digits * 10 + uint64_t(*at - '0');
      exponent -= fraction;
    }
  }
  if (at == end) return nearest;  // infinity or not a number
  int written = 0;
  ++at;
  std::from_chars(*at == '+' ? at + 1 : at, end, written);
  exponent += written;
  const int power = std::abs(exponent);
  if (power > 22) return nearest;  // 10^22 is the last power of ten that is exact
  double scale = 1;
  for (int i = 0; i < power; ++i) scale *= 10;
  const double value = exponent < 0 ? double(digits) / scale : double(digits) * scale;
  return nearest < 0 ? -value : value;
}

std::unique_ptr<Model> read_unigram(JsonView model, const Fields& f) {
  const std::string& where = f.where();
  const auto list = model.find("vocab");
  if (!list || !list->is_array()) throw invalid(where, ".vocab: expected a list of [token, score]");
  Vocab vocab;
  std::vector<double> scores;
  scores.reserve(list->size());
  vocab.reserve(list->size(), list->size() * 8);
  for (const JsonView pair : list->items()) {
    const bool two = pair.is_array() && pair.size() == 2;
    if (!two || !pair.at(0).is_string() || !pair.at(1).is_number())
      throw invalid(where, ".vocab[", scores.size(), "]: expected [token, score]");
    // Trainers write a special token that the text held a second time; the last one is used.
    vocab.add_or_take(pair.at(0).string(), checked_id(int64_t(scores.size()), where + ".vocab"));
    scores.push_back(as_the_reference_reads(pair.at(1).real()));
  }
  std::optional<TokenId> unknown;
  if (f.find("unk_id")) {
    const int64_t id = f.integer("unk_id", 0);
    if (id < 0 || size_t(id) >= scores.size())
      throw invalid(where, ".unk_id: ", id, " is out of range for ", scores.size(), " tokens");
    unknown = TokenId(id);
  }
  return std::make_unique<Unigram>(std::move(vocab), std::move(scores), unknown,
                                   f.boolean("byte_fallback", false));
}

std::unique_ptr<Model> read_wordpiece(JsonView model, const Fields& f, size_t file_size) {
  return std::make_unique<WordPiece>(
      read_vocab_object(model, f.where(), file_size),
      WordPieceOptions{.unknown_token = f.string("unk_token", "[UNK]"),
                       .continuing_prefix = f.string("continuing_subword_prefix", "##"),
                       .max_characters = f.integer("max_input_chars_per_word", 100)});
}

std::unique_ptr<Model> read_model(JsonView model, PreTokenizer* pretokenizer, size_t file_size) {
  const std::string where = "model";
  if (!model.is_object()) throw invalid(where, ": expected an object");
  Dict small;  // every field but the large ones
  for (const auto [key, value] : model.members())
    if (key != "vocab" && key != "merges") small.set(key, to_value(value));
  const Fields f{Value(small), where};
  std::string type = f.string("type", "");
  if (type.empty()) {  // old files
    const auto vocab = model.find("vocab");
    type = model.find("merges")                 ? "BPE"
           : vocab && vocab->is_array()         ? "Unigram"
           : f.find("max_input_chars_per_word") ? "WordPiece"
                                                : "WordLevel";
  }
  if (type == "BPE") return read_bpe(model, f, pretokenizer, file_size);
  if (type == "Unigram") return read_unigram(model, f);
  if (type == "WordPiece") return read_wordpiece(model, f, file_size);
  if (type == "WordLevel")
    return std::make_unique<WordLevel>(read_vocab_object(model, where, file_size),
                                       f.string("unk_token", "<unk>"));
  throw invalid(where, ".type: unknown model '", type, "'; known: BPE, Unigram, WordLevel, WordPiece");
}

std::vector<AddedToken> read_added(const Value& config, const Vocab& vocab) {
  std::vector<AddedToken> tokens;
  if (!config.is_list()) throw invalid("added_tokens: expected a list, got ", config.kind_name());
  for (size_t i = 0; i < config.as_list().size(); ++i) {
    const Fields f(config.as_list()[i], cat("added_tokens[", i, "]"));
    AddedToken t;
    t.id = checked_id(f.integer("id", -1), f.path("id"));
    t.content = f.string("content");
    t.single_word = f.boolean("single_word", false);
    t.left_strip = f.boolean("lstrip", false);
    t.right_strip = f.boolean("rstrip", false);
    t.special = f.boolean("special", false);
    t.normalized = f.boolean("normalized", !t.special);
    if (size_t(t.id) > vocab.size() + config.as_list().size() + 1'000'000)
      throw invalid(f.path("id"), ": ", t.id, " is far beyond the vocabulary of ", vocab.size());
    tokens.push_back(std::move(t));
  }
  return tokens;
}

Truncation read_truncation(const Value& config) {
  const Fields f(config, "truncation");
  Truncation t;
  const int64_t length = f.integer("max_length", 512);
  if (length < 0) throw invalid("truncation.max_length: ", length, " is negative");
  t.max_length = size_t(length);
  const std::string strategy = f.string("strategy", "LongestFirst");
  if (strategy == "OnlyFirst") {
    t.strategy = Truncation::Strategy::only_first;
  } else if (strategy == "OnlySecond") {
    t.strategy = Truncation::Strategy::only_second;
  } else if (strategy != "LongestFirst") {
    throw invalid("truncation.strategy: unknown '", strategy,
                  "'; known: LongestFirst, OnlyFirst, OnlySecond");
  }
  t.keep_right = f.string("direction", "Right") == "Left";
  return t;
}

Padding read_padding(const Value& config) {
  const Fields f(config, "padding");
  Padding p;
  const Value* strategy = f.find("strategy");
  if (strategy && strategy->is_dict()) {
    const int64_t length = f.object("strategy").integer("Fixed", 0);
    constexpr int64_t kMaxFixed = 1 << 24;
    if (length < 0 || length > kMaxFixed)
      throw invalid("padding.strategy.Fixed: ", length, " is not in 0..", kMaxFixed);
    p.length = size_t(length);
  } else if (strategy && !(strategy->is_string() && strategy->as_string() == "BatchLongest")) {
    throw invalid("padding.strategy: expected \"BatchLongest\" or {\"Fixed\": length}");
  }
  const int64_t multiple = f.integer("pad_to_multiple_of", 1);
  if (multiple < 0 || multiple > 1 << 20)
    throw invalid("padding.pad_to_multiple_of: ", multiple, " is out of range");
  p.multiple_of = size_t(std::max<int64_t>(1, multiple));
  p.id = checked_id(f.integer("pad_id", 0), "padding.pad_id");
  p.type_id = uint8_t(f.integer("pad_type_id", 0));
  p.on_left = f.string("direction", "Right") == "Left";
  return p;
}

TokenizerParts read_parts(JsonView root, size_t file_size) {
  TokenizerParts parts;
  if (!root.is_object()) throw invalid("expected an object");
  const auto config = [&](std::string_view key) -> std::optional<Value> {
    const auto value = root.find(key);
    return value ? std::optional(to_value(*value)) : std::nullopt;
  };
  if (const auto c = config("normalizer")) parts.normalizer = make_normalizer(*c, "normalizer");
  if (const auto c = config("pre_tokenizer")) parts.pretokenizer = make_pretokenizer(*c, "pre_tokenizer");
  const auto model = root.find("model");
  if (!model) throw invalid("field 'model' is missing");
  parts.model = read_model(*model, parts.pretokenizer.get(), file_size);
  if (const auto c = config("added_tokens")) parts.added = read_added(*c, parts.model->vocab());
  if (const auto c = config("post_processor"))
    parts.post_processor = make_post_processor(*c, "post_processor");
  if (const auto c = config("decoder")) parts.decoder = make_decoder(*c, "decoder");
  if (const auto c = config("truncation")) parts.truncation = read_truncation(*c);
  if (const auto c = config("padding")) parts.padding = read_padding(*c);
  return parts;
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view where) {
  const Json root = Json::parse_in_place(json, where);
  try {
    return Tokenizer(read_parts(root, json.size()));
  } catch (Error& e) {
    e.set_message(cat(where, ": ", e.message()));
    throw;
  }
}

}  // namespace rlx::text
