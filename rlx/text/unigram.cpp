#include "rlx/text/unigram.h"

#include <algorithm>
#include <limits>

#include "rlx/base/error.h"

namespace rlx::text {

namespace {

constexpr double kUnknownPenalty = 10;
constexpr uint32_t kUnreached = 0xFFFFFFFF;

}  // namespace

Unigram::Unigram(Vocab vocab, std::vector<double> scores, std::optional<TokenId> unknown, bool byte_fallback,
                 const std::vector<bool>* in_text)
    : Model(std::move(vocab)), scores_(std::move(scores)), unknown_(unknown), byte_fallback_(byte_fallback) {
  RLX_CHECK(scores_.size() == vocab_.size(), scores_.size(), " scores for ", vocab_.size(), " tokens");
  const auto counts = [&](size_t id) { return vocab_.has(TokenId(id)) && (!in_text || (*in_text)[id]); };
  size_t bytes = 0;
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < vocab_.size(); ++id) {
    if (!counts(id)) continue;
    bytes += vocab_.text(TokenId(id)).size();
    lowest = std::min(lowest, scores_[id]);
  }
  unknown_score_ = (bytes == 0 ? 0 : lowest) - kUnknownPenalty;
  trie_.reserve(bytes);
  for (size_t id = 0; id < vocab_.size(); ++id)
    if (counts(id)) trie_.set(vocab_.text(TokenId(id)), int32_t(id));
  for (unsigned b = 0; b < 256; ++b) byte_tokens_[b] = vocab_.find(byte_token_name(uint8_t(b))).value_or(-1);
}

// Viterbi over the bytes of the word: steps[i] is the best way to cover the first i bytes. Among equal scores
// the token that begins first stays.
void Unigram::encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const {
  const auto n = uint32_t(word.size());
  auto& steps = scratch.steps;
  steps.assign(n + 1, {0, 0, kUnreached});
  for (uint32_t begin = 0; begin < n;) {
    const uint32_t length = decode_utf8(word, begin).length;
    const double here = steps[begin].score;
    const auto offer = [&](uint32_t end, TokenId id, double score) {
      auto& step = steps[end];
      if (step.from == kUnreached || score > step.score) step = {score, id, begin};
    };
    bool whole_character = false;
    uint32_t node = Trie::kRoot;
    for (uint32_t end = begin; end < n;) {
      node = trie_.child(node, static_cast<uint8_t>(word[end]));
      if (node == Trie::kNone) break;
      ++end;
      const int32_t id = trie_.value(node);
      if (id < 0) continue;
      offer(end, id, here + scores_[size_t(id)]);
      whole_character |= end - begin == length;
    }
    if (!whole_character) offer(begin + length, -1, here + unknown_score_);
    begin += length;
  }
  // Backwards along the best steps; neighbouring unknown characters become one.
  uint32_t unknown_end = 0;
  bool in_unknown = false;
  const size_t first = tokens.size();
  for (uint32_t end = n; end > 0;) {
    const auto& step = steps[end];
    const bool unknown = step.id < 0 || (unknown_ && step.id == *unknown_);
    if (unknown && !in_unknown) unknown_end = end, in_unknown = true;
    if (!unknown) {
      if (in_unknown) tokens.push_back({-1, {end, unknown_end}});
      in_unknown = false;
      tokens.push_back({step.id, {step.from, end}});
    }
    end = step.from;
  }
  if (in_unknown) tokens.push_back({-1, {0, unknown_end}});
  std::reverse(tokens.begin() + long(first), tokens.end());
  const bool any_unknown = std::any_of(tokens.begin(), tokens.end(), [](const Token& t) { return t.id < 0; });
  if (!any_unknown) return;
  std::vector<Token> filled;
  for (const Token& t : tokens) t.id < 0 ? add_unknown(word, t.range, filled) : filled.push_back(t);
  tokens.swap(filled);
}

void Unigram::add_unknown(std::string_view word, Range range, std::vector<Token>& tokens) const {
  // The unknown token spelled out is that token.
  if (const auto id = vocab_.find(word.substr(range.begin, range.size())))
    return tokens.push_back({*id, range});
  if (byte_fallback_) {
    bool complete = true;
    for (uint32_t i = range.begin; i < range.end; ++i)
      complete &= byte_tokens_[static_cast<unsigned char>(word[i])] >= 0;
    if (complete) {
      for (uint32_t i = range.begin; i < range.end; ++i)
        tokens.push_back({byte_tokens_[static_cast<unsigned char>(word[i])], range});
      return;
    }
  }
  if (!unknown_)
    throw invalid("unigram: '", word.substr(range.begin, range.size()),
                  "' has no token and the tokenizer names no unknown token");
  tokens.push_back({*unknown_, range});
}

}  // namespace rlx::text
