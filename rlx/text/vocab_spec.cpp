#include "rlx/text/vocab_spec.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/base/error.h"
#include "rlx/text/bpe.h"
#include "rlx/text/pre_table.h"
#include "rlx/text/tokenizer_parts.h"
#include "rlx/text/unigram.h"
#include "rlx/text/wordpiece.h"

namespace rlx::text {

namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // ▁, the spelling of a space in SentencePiece

TokenType type_of(const VocabSpec& spec, size_t id) {
  return spec.types.empty() ? TokenType::normal : spec.types[id];
}

void check(const VocabSpec& spec) {
  const size_t n = spec.tokens.size();
  if (n == 0) throw invalid("the vocabulary is empty");
  if (n > size_t(kMaxTokenId)) throw invalid("the vocabulary has ", n, " tokens; at most ", kMaxTokenId);
  if (!spec.types.empty() && spec.types.size() != n)
    throw invalid("there are ", spec.types.size(), " token types for ", n, " tokens");
  const bool needs_scores = spec.model == "llama" || spec.model == "t5";
  if (needs_scores && spec.scores.size() != n)
    throw invalid("there are ", spec.scores.size(), " scores for ", n, " tokens");
  const auto check_id = [&](std::string_view name, std::optional<TokenId> id) {
    if (id && (*id < 0 || size_t(*id) >= n))
      throw invalid("the ", name, " id ", *id, " is outside the ", n, " tokens");
  };
  check_id("bos", spec.bos);
  check_id("eos", spec.eos);
  check_id("unknown", spec.unknown);
  check_id("separator", spec.separator);
  check_id("padding", spec.padding);
  check_id("cls", spec.cls);
}

Vocab make_vocab(const std::vector<std::string>& tokens) {
  Vocab vocab;
  vocab.reserve(tokens.size(), tokens.size() * 8);
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!vocab.add(tokens[id], TokenId(id)))
      throw invalid("token ", id, " '", tokens[id], "' is in the vocabulary twice");
  }
  return vocab;
}

// White space that tokens take with them. GGUF has no field for it; the models that do it are told by name.
struct StripRule {
  std::string VocabSpec::* field;
  std::vector<std::string_view> contains;  // one of them stands in the field, lower case
  std::string_view token;                  // empty: every special token but `except`
  std::vector<std::string_view> except;
  bool left, right;
};

const std::vector<StripRule>& strip_rules() {
  static const std::vector<StripRule> rules = {
      {&VocabSpec::pre, {"jina-v2-de", "jina-v2-es", "jina-v2-code"}, "<mask>", {}, true, false},
      {&VocabSpec::architecture, {"nomic-bert-moe", "jina-bert-v3"}, "<mask>", {}, true, false},
      {&VocabSpec::name, {"phi-3", "phi3"}, "", {"<unk>", "<s>", "<|endoftext|>"}, false, true},
      {&VocabSpec::name, {"modern-bert"}, "[MASK]", {}, true, false},
  };
  return rules;
}

void set_strips(const VocabSpec& spec, std::vector<AddedToken>& added) {
  for (const StripRule& rule : strip_rules()) {
    std::string value;
    for (const char c : spec.*rule.field) value.push_back(c >= 'A' && c <= 'Z' ? char(c + 32) : c);
    const auto within = [&](std::string_view part) { return value.find(part) != value.npos; };
    if (std::none_of(rule.contains.begin(), rule.contains.end(), within)) continue;
    for (AddedToken& t : added) {
      const bool meant = rule.token.empty() ? std::find(rule.except.begin(), rule.except.end(), t.content) ==
                                                  rule.except.end()
                                            : t.content == rule.token;
      t.left_strip |= meant && rule.left;
      t.right_strip |= meant && rule.right;
    }
    return;
  }
}

std::vector<AddedToken> make_added(const VocabSpec& spec) {
  std::vector<AddedToken> added;
  // SentencePiece normalises a text as a whole, so that the space before a piece of the user stays, and finds the piece in what that
  // gives. What its table would change is looked for before; a unigram model weighs pieces with spaces like any others.
  NormalizerPtr table;
  if (!spec.prefix_every_part) table = make_sentencepiece(spec.charsmap, false, "charsmap");
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenType type = type_of(spec, id);
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (!special && type != TokenType::user_defined) continue;
    AddedToken t;
    t.id = TokenId(id);
    t.content = spec.tokens[id];
    t.special = special;
    if (table && !special && !(spec.model == "t5" && t.content.find(kMark) != t.content.npos)) {
      TrackedText text;
      text.reset(t.content, 0, false);
      table->apply(text);
      t.as_spelled = text.view() == t.content;
    }
    added.push_back(std::move(t));
  }
  set_strips(spec, added);
  return added;
}

// The frame of special tokens around a text.
PostProcessorPtr make_frame_of(const VocabSpec& spec, bool default_bos, bool default_eos,
                               bool separator = false) {
  const auto wanted = [&](std::optional<bool> asked, bool otherwise, std::optional<TokenId> id,
                          std::string_view name) {
    if (!asked.value_or(otherwise && id)) return std::vector<TokenId>{};
    if (!id) throw invalid("the tokenizer adds a ", name, " token and names none");
    return std::vector<TokenId>{*id};
  };
  const bool bert = spec.model == "bert";
  std::vector<TokenId> first =
      wanted(spec.add_bos, default_bos, bert && spec.cls ? spec.cls : spec.bos, "bos");
  std::vector<TokenId> last =
      wanted(spec.add_eos, default_eos, bert && spec.separator ? spec.separator : spec.eos, "eos");
  if (first.empty() && last.empty()) return nullptr;
  // A pair has the closing token after each text, and the opening one before each where nothing closes.
  std::vector<TokenId> middle = last.empty() ? first : last;
  if (!bert && separator && spec.separator) middle.push_back(*spec.separator);
  return make_frame(std::move(first), std::move(middle), std::move(last), bert);
}

// Tokens of merges that the vocabulary lacks go to `missing`, where that is given.
std::vector<Merge> read_merges(const VocabSpec& spec, const Vocab& vocab, std::vector<std::string>* missing) {
  std::vector<Merge> merges;
  std::unordered_map<std::string, TokenId> missing_ids;
  merges.reserve(spec.merges.size());
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const std::string_view line = spec.merges[i];
    const size_t space = line.find(' ', 1);  // tokens spell a space in another way
    if (space == line.npos) throw invalid("merge ", i, " '", line, "' is not two tokens");
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    const auto id = [&](std::string_view token) {
      const auto found = vocab.find(token);
      if (found) return *found;
      if (!missing) throw invalid("merge ", i, " '", line, "': token '", token, "' is not in the vocabulary");
      const auto [at, fresh] =
          missing_ids.try_emplace(std::string(token), TokenId(vocab.size() + missing->size()));
      if (fresh) missing->emplace_back(token);
      return at->second;
    };
    merges.push_back({id(left), id(right), id(cat(left, right)), uint32_t(i)});
  }
  return merges;
}

const PreRules& pre_rules_of(const VocabSpec& spec) {
  std::string_view name = spec.pre;
  if (name.empty()) name = "default";
  if (spec.model == "gemma4") name = "gemma4";
  if (const PreRules* rules = find_pre_rules(name)) return *rules;
  std::vector<std::string_view> names;
  for (const PreRules& row : pre_table()) names.push_back(row.name);
  throw invalid("no pattern is known for the pre-tokenizer '", spec.pre, "'; known: ", join(names));
}

TokenizerParts merged_bpe(const VocabSpec& spec) {
  const PreRules& rules = pre_rules_of(spec);
  TokenizerParts parts;
  if (rules.has(kMarkSpaces)) parts.normalizer = make_replace(" ", std::string(kMark));
  std::vector<PreTokenizerPtr> steps;
  for (const std::string_view pattern : rules.patterns) steps.push_back(make_split(pattern));
  if (!rules.has(kCharacters)) steps.push_back(make_byte_level(false, false));
  parts.pretokenizer = make_pretokenizer_sequence(std::move(steps));

  Vocab vocab = make_vocab(spec.tokens);
  BpeOptions options;
  options.ignore_merges = rules.has(kIgnoreMerges);
  options.whole_newlines = rules.has(kWholeNewlines);
  options.byte_fallback = rules.has(kCharacters);
  options.bytes = parts.pretokenizer->leave_bytes();
  const std::vector<Merge> merges = read_merges(spec, vocab, options.bytes ? &options.missing : nullptr);
  parts.model = std::make_unique<Bpe>(std::move(vocab), merges, std::move(options));
  parts.decoder = !rules.has(kCharacters)  ? make_byte_level_decoder()
                  : rules.has(kMarkSpaces) ? make_sentencepiece_decoder(false, false)
                                           : make_plain_decoder();
  parts.clean_spaces = rules.has(kCleanSpaces);
  VocabSpec framed;
  framed.model = spec.model;
  framed.bos = spec.bos, framed.eos = spec.eos, framed.separator = spec.separator;
  framed.add_bos = rules.has(kAlwaysBos) && spec.bos ? true : spec.add_bos;
  framed.add_eos = spec.add_eos;
  parts.post_processor =
      make_frame_of(framed, rules.has(kAddBos), false, spec.add_separator.value_or(rules.has(kAddSeparator)));
  return parts;
}

bool is_mergeable(const VocabSpec& spec, size_t id) {
  const TokenType type = type_of(spec, id);
  return type == TokenType::normal || type == TokenType::user_defined;
}

// An unused token may be a step on the way to a longer one, and is never left in a text.
bool is_step(const VocabSpec& spec, size_t id) {
  return is_mergeable(spec, id) || type_of(spec, id) == TokenType::unused;
}

// SentencePiece has no list of merges: any two neighbours whose concatenation is a token may merge, the
// highest score first. Written as merges, pairs of equal score share a rank.
std::vector<Merge> merges_from_scores(const VocabSpec& spec, const Vocab& vocab) {
  std::vector<Merge> merges;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!is_step(spec, id)) continue;
    const std::string_view token = spec.tokens[id];
    for (size_t cut = 0; cut < token.size();) {
      cut += decode_utf8(token, cut).length;
      if (cut >= token.size()) break;
      const auto left = vocab.find(token.substr(0, cut)), right = vocab.find(token.substr(cut));
      if (left && right && is_step(spec, size_t(*left)) && is_step(spec, size_t(*right)))
        merges.push_back({*left, *right, TokenId(id), 0});
    }
  }
  const auto score = [&](const Merge& m) { return spec.scores[size_t(m.result)]; };
  std::stable_sort(merges.begin(), merges.end(),
                   [&](const Merge& a, const Merge& b) { return score(a) > score(b); });
  uint32_t rank = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i > 0 && score(merges[i]) < score(merges[i - 1])) ++rank;
    merges[i].rank = rank;
  }
  return merges;
}

/// Puts ▁ in front of a text; only at the start of the whole input unless `every_part`.
class SpacePrefix final : public Normalizer {
 public:
  explicit SpacePrefix(bool every_part) : every_part_(every_part) {}
  void apply(TrackedText& text) const override {
    if (text.view().empty() || !(every_part_ || text.at_input_start())) return;
    Rewriter writer(text);
    writer.insert_before(0, kMark);
    writer.keep(0, writer.view().size());
    writer.finish();
  }

 private:
  bool every_part_;
};

TokenizerParts sentencepiece(const VocabSpec& spec) {
  TokenizerParts parts;
  std::vector<NormalizerPtr> steps;
  if (!spec.charsmap.empty() || spec.remove_extra_spaces)
    steps.push_back(make_sentencepiece(spec.charsmap, spec.remove_extra_spaces, "charsmap"));
  if (spec.add_space_prefix) steps.push_back(std::make_unique<SpacePrefix>(spec.prefix_every_part));
  steps.push_back(make_replace(" ", std::string(kMark)));
  parts.normalizer = make_normalizer_sequence(std::move(steps));

  Vocab vocab = make_vocab(spec.tokens);
  std::optional<TokenId> unknown = spec.unknown;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!unknown && type_of(spec, id) == TokenType::unknown) unknown = TokenId(id);
  }
  if (spec.model == "t5") {
    // Where no token has a space but at its start, the text falls into words that can be remembered.
    bool words = true;
    for (size_t id = 0; id < spec.tokens.size(); ++id)
      words &= !is_mergeable(spec, id) || spec.tokens[id].find(kMark, 1) == std::string::npos;
    if (words) parts.pretokenizer = make_metaspace(PrependScheme::never);
    // Only ordinary tokens may be found in the text.
    std::vector<double> scores(spec.scores.begin(), spec.scores.end());
    std::vector<bool> in_text(spec.tokens.size());
    for (size_t id = 0; id < spec.tokens.size(); ++id) in_text[id] = is_mergeable(spec, id);
    parts.model =
        std::make_unique<Unigram>(std::move(vocab), std::move(scores), unknown, spec.byte_fallback, &in_text);
    parts.post_processor = make_frame_of(spec, false, true);
  } else {
    const std::vector<Merge> merges = merges_from_scores(spec, vocab);
    BpeOptions options;
    options.unknown = unknown;
    options.fuse_unknown = true;
    options.byte_fallback = spec.byte_fallback;
    options.unused.resize(spec.tokens.size());
    for (size_t id = 0; id < spec.tokens.size(); ++id)
      options.unused[id] = type_of(spec, id) == TokenType::unused;
    parts.model = std::make_unique<Bpe>(std::move(vocab), merges, std::move(options));
    parts.post_processor = make_frame_of(spec, true, false);
  }
  parts.decoder = make_sentencepiece_decoder(spec.add_space_prefix, spec.remove_extra_spaces);
  return parts;
}

// GGUF files mark the tokens that begin a word with ▁ and leave the others bare; WordPiece marks the others.
TokenizerParts wordpiece(const VocabSpec& spec) {
  TokenizerParts parts;
  std::vector<std::string> tokens = spec.tokens;
  const bool marked =
      std::any_of(tokens.begin(), tokens.end(), [](const auto& t) { return t.starts_with(kMark); });
  for (size_t id = 0; marked && id < tokens.size(); ++id) {
    if (type_of(spec, id) != TokenType::normal) continue;
    tokens[id] = tokens[id].starts_with(kMark) ? tokens[id].substr(kMark.size()) : "##" + tokens[id];
  }
  WordPieceOptions options;
  if (spec.unknown) options.unknown_token = tokens[size_t(*spec.unknown)];
  parts.normalizer = make_bert_normalizer(spec.lowercase, spec.strip_accents.value_or(spec.lowercase));
  parts.pretokenizer = make_bert_pretokenizer();
  parts.model = std::make_unique<WordPiece>(make_vocab(tokens), options);
  parts.decoder = make_wordpiece_decoder("##", true);
  parts.clean_spaces = true;
  parts.post_processor = make_frame_of(spec, true, true);
  return parts;
}

TokenizerParts make_parts(const VocabSpec& spec) {
  check(spec);
  if (spec.model == "gpt2" || spec.model == "gemma4") return merged_bpe(spec);
  if (spec.model == "llama" || spec.model == "t5") return sentencepiece(spec);
  if (spec.model == "bert") return wordpiece(spec);
  throw invalid("unknown tokenizer model '", spec.model, "'; known: gpt2, llama, t5, bert, gemma4");
}

}  // namespace

Tokenizer make_tokenizer(const VocabSpec& spec, std::string_view where) {
  try {
    TokenizerParts parts = make_parts(spec);
    parts.added = make_added(spec);
    return Tokenizer(std::move(parts));
  } catch (Error& e) {
    e.set_message(cat(where, ": ", e.message()));
    throw;
  }
}

}  // namespace rlx::text
