// A word becomes symbols (characters or bytes), and bpe_merge.cpp merges those. A word beyond the word cache
// is cut first wherever no merge can ever cross, see note_joins.
#include "rlx/text/bpe.h"

#include <algorithm>
#include <bit>

#include "rlx/base/error.h"
#include "rlx/text/hash.h"

namespace rlx::text {

namespace {

// Parts of a cut word live in the same cache as whole words, which can be other tokens where a whole word is
// looked up first; this keeps the keys apart.
constexpr uint64_t kPartKey = 0x5851F42D4C957F2Du;

}  // namespace

Bpe::Bpe(Vocab vocab, std::span<const Merge> merges, BpeOptions options)
    : Model(std::move(vocab)), options_(std::move(options)) {
  pairs_.resize(std::bit_ceil(merges.size() * 3 / 2 + 16));
  pair_filter_.resize(std::bit_ceil(merges.size() * 4 + 64) / 64);
  const size_t mask = pairs_.size() - 1;
  for (const Merge& m : merges) {
    rank_count_ = std::max<size_t>(rank_count_, size_t(m.rank) + 1);
    const uint64_t hash = hash_pair(m.left, m.right);
    pair_filter_[(hash >> 38) & (pair_filter_.size() - 1)] |= uint64_t(1) << (hash >> 32 & 63);
    size_t at = hash & mask;
    while (pairs_[at].left >= 0 && !(pairs_[at].left == m.left && pairs_[at].right == m.right))
      at = (at + 1) & mask;
    if (size_t(m.result) < options_.unused.size() && options_.unused[size_t(m.result)])
      halves_.try_emplace(m.result, m.left, m.right);
    pairs_[at] = {m.left, m.right, m.rank, m.result};  // a pair listed twice has the rank of its last line
  }
  for (size_t id = 0; id < vocab_.size(); ++id)
    if (vocab_.has(TokenId(id))) longest_token_ = std::max(longest_token_, vocab_.text(TokenId(id)).size());
  affixes_ = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  all_byte_tokens_ = true;
  for (unsigned b = 0; b < 256; ++b) {
    std::string name;
    if (options_.bytes) {
      append_utf8(name, byte_to_char(uint8_t(b)));
    } else {
      name = byte_token_name(uint8_t(b));
    }
    byte_tokens_[b] = vocab_.find(name).value_or(-1);
    all_byte_tokens_ &= byte_tokens_[b] >= 0;
  }
  for (unsigned c = 0; c < 128; ++c) ascii_tokens_[c] = vocab_.find(std::string(1, char(c))).value_or(-1);
  note_joins(merges);
  // Where a symbol that does not spell its own text (an unknown character, a byte in angle brackets) can
  // merge, the text says nothing about how a token begins.
  spelled_ = !affixes_;
  for (const Merge& m : merges) {
    for (const TokenId id : {m.left, m.right}) {
      spelled_ &= id != options_.unknown;
      if (!options_.bytes && options_.byte_fallback) spelled_ &= byte_token_value(spelling(id)) < 0;
    }
  }
}

// A merge crosses the place between characters a and b only if its left token ends in a and its right token
// begins with b. Where no merge has such ends the word can be cut without changing the result; texts without
// a pre-tokeniser fall into ordinary words this way. In byte mode the characters are bytes.
void Bpe::note_joins(std::span<const Merge> merges) {
  std::vector<uint64_t> others;
  const auto unit = [&](char32_t c) -> char32_t {
    const int byte = options_.bytes ? char_to_byte(c) : -1;
    return byte >= 0 ? char32_t(byte) : c;
  };
  const std::string& prefix = options_.continuing_prefix;
  const std::string& suffix = options_.end_suffix;
  for (const Merge& m : merges) {
    std::string_view left = spelling(m.left), right = spelling(m.right);
    if (!prefix.empty() && right.starts_with(prefix)) right.remove_prefix(prefix.size());
    if (!suffix.empty() && left.ends_with(suffix)) continue;
    if (left.empty() || right.empty()) continue;
    const char32_t a = unit(last_utf8(left).code), b = unit(decode_utf8(right, 0).code);
    if (a < 128 && b < 128) {
      ascii_joins_[a * 2 + b / 64] |= uint64_t(1) << (b % 64);
    } else {
      others.push_back(uint64_t(a) << 32 | b);
    }
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  joins_.assign(std::bit_ceil(others.size() * 4 + 16), 0);
  for (const uint64_t key : others) {
    size_t at = hash_u64(key) & (joins_.size() - 1);
    while (joins_[at]) at = (at + 1) & (joins_.size() - 1);
    joins_[at] = key + 1;
  }
}

bool Bpe::may_join(char32_t a, char32_t b) const {
  if (a < 128 && b < 128) return ascii_joins_[a * 2 + b / 64] >> (b % 64) & 1;
  const uint64_t key = uint64_t(a) << 32 | b;
  for (size_t at = hash_u64(key) & (joins_.size() - 1); joins_[at]; at = (at + 1) & (joins_.size() - 1)) {
    if (joins_[at] == key + 1) return true;
  }
  return false;
}

std::optional<TokenId> Bpe::whole_word(std::string_view word) const {
  if (!options_.ignore_merges) {
    const bool newlines = options_.whole_newlines && word.find_first_not_of('\n') == word.npos;
    if (!newlines) return std::nullopt;
  }
  if (word.size() > longest_token_) return std::nullopt;
  if (!options_.bytes) return vocab_.find(word);
  std::string spelled;
  for (const char c : word) append_utf8(spelled, byte_to_char(static_cast<unsigned char>(c)));
  return vocab_.find(spelled);
}

bool Bpe::spell_bytes(std::string_view bytes, Range range, std::vector<Token>& symbols) const {
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (!std::all_of(bytes.begin(), bytes.end(), [&](char c) { return token_of(c) >= 0; })) return false;
  uint32_t k = range.begin;
  for (const char c : bytes) {
    const uint32_t next = std::min(k + 1, range.end);
    symbols.push_back({token_of(c), {k, next}});
    k = next;
  }
  return true;
}

void Bpe::first_symbols(std::string_view word, std::vector<Token>& symbols) const {
  if (options_.bytes && !options_.unknown && options_.missing_unknown.empty()) {
    for (uint32_t i = 0; i < word.size(); ++i) {
      const TokenId id = byte_tokens_[static_cast<unsigned char>(word[i])];
      if (id >= 0) symbols.push_back({id, {i, i + 1}});
    }
    return;
  }
  // Unknown characters wait until the next known one, so that neighbours can be fused.
  std::optional<Token> unknown;
  const auto flush = [&] {
    if (unknown) symbols.push_back(*unknown);
    unknown.reset();
  };
  std::string spelled;
  for (uint32_t i = 0; i < word.size();) {
    const uint32_t length = options_.bytes ? 1 : decode_utf8(word, i).length;
    const Range range{i, i + length};
    const auto byte = static_cast<unsigned char>(word[i]);
    TokenId id = -1;
    if (options_.bytes) {
      id = byte_tokens_[byte];
    } else if (affixes_) {
      spelled.clear();
      if (i > 0) spelled.append(options_.continuing_prefix);
      spelled.append(word.substr(i, length));
      if (range.end == word.size()) spelled.append(options_.end_suffix);
      id = vocab_.find(spelled).value_or(-1);
    } else {
      id = byte < 128 ? ascii_tokens_[byte] : vocab_.find(word.substr(i, length)).value_or(-1);
    }
    i = range.end;
    if (id >= 0) {
      flush();
      symbols.push_back({id, range});
      continue;
    }
    // The bytes of affixes are spelled too.
    const std::string_view bytes = affixes_ ? std::string_view(spelled) : word.substr(range.begin, length);
    if (options_.byte_fallback && spell_bytes(bytes, range, symbols)) continue;
    if (!options_.missing_unknown.empty())
      throw missing_unknown("bpe", word.substr(range.begin, length), options_.missing_unknown);
    if (!options_.unknown) continue;
    if (unknown && options_.fuse_unknown) {
      unknown->range.end = range.end;
    } else {
      flush();
      unknown = Token{*options_.unknown, range};
    }
  }
  flush();
}

// Appends what an unused token was merged from, down to tokens that are used. The halves are shorter than
// the token, so this ends.
void Bpe::take_apart(TokenId id, Range range, std::vector<Token>& tokens) const {
  std::vector<Token> waiting{{id, range}};
  while (!waiting.empty()) {
    const Token t = waiting.back();
    waiting.pop_back();
    const auto found = halves_.find(t.id);
    if (found == halves_.end()) {
      tokens.push_back(t);
      continue;
    }
    const auto [left, right] = found->second;
    const auto middle = t.range.begin + uint32_t(vocab_.text(left).size());
    waiting.push_back({right, {middle, t.range.end}});
    waiting.push_back({left, {t.range.begin, middle}});
  }
}

void Bpe::take_missing_apart(std::string_view word, std::vector<Token>& tokens) const {
  const auto missing = [&](const Token& t) { return size_t(t.id) >= vocab_.size(); };
  if (std::none_of(tokens.begin(), tokens.end(), missing)) return;
  std::vector<Token> used;
  for (const Token& t : tokens) {
    if (!missing(t)) {
      used.push_back(t);
      continue;
    }
    for (uint32_t i = t.range.begin; i < t.range.end; ++i) {
      const auto byte = static_cast<unsigned char>(word[i]);
      if (byte_to_char(byte) < 128 && byte_tokens_[byte] >= 0)
        used.push_back({byte_tokens_[byte], {i, i + 1}});
    }
  }
  tokens.swap(used);
}

void Bpe::merge_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const {
  first_symbols(word, tokens);
  tokens.size() <= kShortWord ? merge_short(tokens) : merge_long(tokens, scratch);
  if (!options_.missing.empty()) take_missing_apart(word, tokens);
  if (halves_.empty()) return;
  std::vector<Token> used;
  for (const Token& t : tokens) take_apart(t.id, t.range, used);
  tokens.swap(used);
}

void Bpe::encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const {
  if (const auto id = whole_word(word)) {
    tokens.push_back({*id, {0, uint32_t(word.size())}});
    return;
  }
  merge_word(word, scratch, tokens);
}

void Bpe::encode_part(std::string_view part, ModelScratch& scratch, TokenSink& out) const {
  const bool cached = part.size() <= WordCache::kMaxWord;
  const uint64_t hash =
      cached ? hash_bytes(part) ^ (options_.ignore_merges || options_.whole_newlines ? kPartKey : 0) : 0;
  if (cached && scratch.cache.find(part, hash, out)) return;
  scratch.tokens.clear();
  merge_word(part, scratch, scratch.tokens);
  if (cached) scratch.cache.store(part, hash, scratch.tokens);
  for (const Token& t : scratch.tokens) out.add(t.id, t.range);
}

void Bpe::encode_long(std::string_view word, ModelScratch& scratch, TokenSink& out) const {
  if (const auto id = whole_word(word)) return out.add(*id, {0, uint32_t(word.size())});
  if (affixes_) return Model::encode_long(word, scratch, out);
  const uint32_t base = out.base;
  uint32_t begin = 0;
  const auto emit = [&](uint32_t end) {
    out.base = base + begin;
    encode_part(word.substr(begin, end - begin), scratch, out);
    begin = end;
  };
  // Unknown characters may fuse with their neighbours, so a cut needs a token on both sides; where every byte
  // has a token there are none.
  const bool all_known = spelled_ && all_byte_tokens_ && (options_.bytes || options_.byte_fallback);
  const auto known = [&](Decoded c, uint32_t at) {
    if (all_known) return true;
    if (options_.bytes) return byte_tokens_[static_cast<unsigned char>(word[at])] >= 0;
    if (c.code < 128) return ascii_tokens_[c.code] >= 0;
    return vocab_.find(word.substr(at, c.length)).has_value();
  };
  const auto read = [&](uint32_t at) -> Decoded {
    if (options_.bytes) return {static_cast<unsigned char>(word[at]), 1};
    return decode_utf8(word, at);
  };
  Decoded left = read(0);
  uint32_t left_at = 0;
  for (uint32_t at = left.length; at < word.size();) {
    const Decoded right = read(at);
    if (!may_join(left.code, right.code) && known(left, left_at) && known(right, at)) emit(at);
    left = right;
    left_at = at;
    at += right.length;
  }
  emit(uint32_t(word.size()));
  out.base = base;
}

}  // namespace rlx::text
