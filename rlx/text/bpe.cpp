// Three ways to the same answer, by the length of the word:
//   up to kShortWord symbols   scan all pair ranks for the smallest; quadratic, but in one cache line or two
//   longer                     MergeQueue; near linear
//   beyond the word cache      cut first wherever no merge can ever cross, see note_joins
#include "rlx/text/bpe.h"

#include <algorithm>
#include <bit>

#include "rlx/base/error.h"
#include "rlx/text/hash.h"

namespace rlx::text {

namespace {

constexpr size_t kShortWord = 48;
constexpr uint32_t kNoRank = MergeQueue::kNoRank;

uint64_t pair_hash(TokenId left, TokenId right) {
  return hash_u64(uint64_t(uint32_t(left)) << 32 | uint32_t(right));
}

char32_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  const Decoded c = decode_utf8(text, at);
  return at + c.length == text.size() ? c.code : kBadByte;
}

}  // namespace

Bpe::Bpe(Vocab vocab, std::span<const Merge> merges, BpeOptions options)
    : Model(std::move(vocab)), options_(std::move(options)) {
  pairs_.resize(std::bit_ceil(merges.size() * 2 + 16));
  const size_t mask = pairs_.size() - 1;
  for (const Merge& m : merges) {
    rank_count_ = std::max<size_t>(rank_count_, size_t(m.rank) + 1);
    size_t at = pair_hash(m.left, m.right) & mask;
    while (pairs_[at].left >= 0 && !(pairs_[at].left == m.left && pairs_[at].right == m.right))
      at = (at + 1) & mask;
    pairs_[at] = {m.left, m.right, m.rank, m.result};  // a pair listed twice has the rank of its last line
  }
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
}

const Bpe::PairSlot* Bpe::find_pair(TokenId left, TokenId right) const {
  const size_t mask = pairs_.size() - 1;
  for (size_t at = pair_hash(left, right) & mask; pairs_[at].left >= 0; at = (at + 1) & mask) {
    if (pairs_[at].left == left && pairs_[at].right == right) return &pairs_[at];
  }
  return nullptr;
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
    std::string_view left = vocab_.text(m.left), right = vocab_.text(m.right);
    if (!prefix.empty() && right.starts_with(prefix)) right.remove_prefix(prefix.size());
    if (!suffix.empty() && left.ends_with(suffix)) continue;
    if (left.empty() || right.empty()) continue;
    const char32_t a = unit(last_character(left)), b = unit(decode_utf8(right, 0).code);
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
  if (!options_.bytes) return vocab_.find(word);
  std::string spelled;
  for (const char c : word) append_utf8(spelled, byte_to_char(static_cast<unsigned char>(c)));
  return vocab_.find(spelled);
}

void Bpe::first_symbols(std::string_view word, std::vector<Token>& symbols) const {
  if (options_.bytes && !options_.unknown) {
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
  const bool affixes = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  std::string spelled;
  for (uint32_t i = 0; i < word.size();) {
    const uint32_t length = options_.bytes ? 1 : decode_utf8(word, i).length;
    const Range range{i, i + length};
    const auto byte = static_cast<unsigned char>(word[i]);
    TokenId id = -1;
    if (options_.bytes) {
      id = byte_tokens_[byte];
    } else if (affixes) {
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
    if (options_.byte_fallback) {
      bool complete = true;
      for (uint32_t k = range.begin; k < range.end; ++k)
        complete &= byte_tokens_[static_cast<unsigned char>(word[k])] >= 0;
      if (complete) {
        for (uint32_t k = range.begin; k < range.end; ++k)
          symbols.push_back({byte_tokens_[static_cast<unsigned char>(word[k])], {k, k + 1}});
        continue;
      }
    }
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

void Bpe::encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const {
  if (options_.ignore_merges) {
    if (const auto id = whole_word(word)) {
      tokens.push_back({*id, {0, uint32_t(word.size())}});
      return;
    }
  }
  first_symbols(word, tokens);
  tokens.size() <= kShortWord ? merge_short(tokens) : merge_long(tokens, scratch);
}

void Bpe::merge_short(std::vector<Token>& symbols) const {
  size_t n = symbols.size();
  if (n < 2) return;
  const PairSlot* pairs[kShortWord];
  uint32_t ranks[kShortWord];
  const auto look = [&](size_t i) {
    pairs[i] = find_pair(symbols[i].id, symbols[i + 1].id);
    ranks[i] = pairs[i] ? pairs[i]->rank : kNoRank;
  };
  for (size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNoRank) break;
    symbols[best].id = pairs[best]->result;
    symbols[best].range.end = symbols[best + 1].range.end;
    --n;
    for (size_t i = best + 1; i < n; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 1 < n; ++i) pairs[i] = pairs[i + 1], ranks[i] = ranks[i + 1];
    if (best + 1 < n) look(best);
    if (best > 0) look(best - 1);
  }
  symbols.resize(n);
}

void Bpe::merge_long(std::vector<Token>& symbols, ModelScratch& scratch) const {
  // A doubly linked list over the symbols; a merged symbol takes the place of its left half.
  const uint32_t n = uint32_t(symbols.size());
  constexpr uint32_t kNone = 0xFFFFFFFF;
  std::vector<uint32_t>&next = scratch.next, &previous = scratch.previous, &places = scratch.places;
  next.resize(n);
  previous.resize(n);
  for (uint32_t i = 0; i < n; ++i) next[i] = i + 1 < n ? i + 1 : kNone, previous[i] = i ? i - 1 : kNone;
  MergeQueue& queue = scratch.queue;
  queue.start(rank_count_);
  const auto offer = [&](uint32_t left) {
    if (const PairSlot* p = find_pair(symbols[left].id, symbols[next[left]].id)) queue.push(p->rank, left);
  };
  for (uint32_t i = 0; i + 1 < n; ++i) offer(i);
  for (uint32_t rank = queue.lowest(); rank != kNoRank; rank = queue.lowest()) {
    queue.take(places);
    for (size_t k = 0; k < places.size(); ++k) {
      const uint32_t at = places[k];
      if (symbols[at].id < 0 || next[at] == kNone) continue;
      const uint32_t right = next[at];
      const PairSlot* pair = find_pair(symbols[at].id, symbols[right].id);
      if (!pair || pair->rank != rank) continue;  // one of its halves has gone into another merge
      symbols[at].id = pair->result;
      symbols[at].range.end = symbols[right].range.end;
      symbols[right].id = -1;
      next[at] = next[right];
      if (next[at] != kNone) {
        previous[next[at]] = at;
        offer(at);
      }
      if (previous[at] != kNone) offer(previous[at]);
      if (queue.lowest() <= rank) {
        // The merge made a pair that goes before the rest of this list.
        for (size_t rest = k + 1; rest < places.size(); ++rest) queue.push(rank, places[rest]);
        break;
      }
    }
  }
  symbols.erase(std::remove_if(symbols.begin(), symbols.end(), [](const Token& t) { return t.id < 0; }),
                symbols.end());
}

void Bpe::encode_long(std::string_view word, ModelScratch& scratch, TokenSink& out) const {
  if (options_.ignore_merges) {
    if (const auto id = whole_word(word)) return out.add(*id, {0, uint32_t(word.size())});
  }
  const bool affixes = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  if (affixes || options_.ignore_merges) return Model::encode_long(word, scratch, out);
  const uint32_t base = out.base;
  uint32_t begin = 0;
  const auto emit = [&](uint32_t end) {
    out.base = base + begin;
    const std::string_view part = word.substr(begin, end - begin);
    part.size() > WordCache::kMaxWord ? Model::encode_long(part, scratch, out) : encode(part, scratch, out);
    begin = end;
  };
  // Unknown characters may fuse with their neighbours, so a cut needs a token on both sides.
  const auto known = [&](Decoded c, uint32_t at) {
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
