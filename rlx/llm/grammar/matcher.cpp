#include "rlx/llm/grammar/matcher.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/llm/grammar/gbnf.h"
#include "rlx/llm/grammar/json_schema.h"
#include "rlx/llm/grammar/regular_expression.h"

namespace rlx::llm {

Grammar Grammar::from_gbnf(std::string_view source, std::string_view root) {
  return Grammar(parse_gbnf(source, root), "gbnf");
}

Grammar Grammar::from_regex(std::string_view pattern) {
  RuleSet rules;
  rules.add("root", parse_regular_expression(pattern));
  return Grammar(rules, "regular expression");
}

Grammar Grammar::from_json_schema(JsonView schema) {
  return Grammar(json_schema_rules(schema), "json schema");
}

namespace {

// A state with its moves takes about 1 KiB; masks are kept for fewer.
constexpr size_t kMaxStatesKept = 1 << 15;
constexpr size_t kMaxMasksKept = 1 << 10;

void allow(std::vector<uint32_t>& words, TokenId id) { words[size_t(id) / 32] |= 1u << (id % 32); }

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const TokenTrie> tokens)
    : grammar_(std::move(grammar)),
      tokens_(std::move(tokens)),
      states_(std::shared_ptr<const Automaton>(grammar_, &grammar_->automaton())),
      state_(states_.start()) {
  for (const TokenReference& t : grammar_->automaton().tokens()) {
    if (t.id >= 0 && size_t(t.id) >= tokens_->vocab_size())
      throw invalid("grammar: token ", t.id, " is not in the vocabulary of ", tokens_->vocab_size(),
                    " tokens");
    const auto id = t.id >= 0 ? std::optional<TokenId>(TokenId(t.id)) : tokens_->named(t.name);
    if (!id) throw invalid("grammar: '", t.name, "' is no token of the vocabulary");
    named_.push_back(*id);
  }
}

bool GrammarMatcher::names(int32_t reference, TokenId id) const {
  return (named_[size_t(reference)] == id) != grammar_->automaton().tokens()[size_t(reference)].negated;
}

std::span<const uint32_t> GrammarMatcher::mask(std::optional<int64_t> budget) {
  if (ended_) {
    limited_.words.assign((tokens_->vocab_size() + 31) / 32, 0);
    return limited_.words;
  }
  if (states_.size() > kMaxStatesKept || masks_.size() > kMaxMasksKept) {
    masks_.clear();
    state_ = states_.forget_but(state_);
  }
  auto found = masks_.find(state_);
  if (found == masks_.end()) found = masks_.emplace(state_, make_mask({})).first;
  if (!budget || found->second.furthest < *budget) return found->second.words;
  limited_ = make_mask(budget);
  return limited_.words;
}

GrammarMatcher::Mask GrammarMatcher::make_mask(std::optional<int64_t> budget) {
  Mask mask;
  mask.words.assign((tokens_->vocab_size() + 31) / 32, 0);
  const auto reaches = [&](int32_t state) {
    const int64_t distance = states_.bytes_to_end(state);
    if (budget && distance >= *budget) return false;
    mask.furthest = std::max(mask.furthest, distance);
    return true;
  };
  std::vector<int32_t> way(size_t(tokens_->depth()) + 1, state_);  // by depth: the state before that byte
  const std::vector<TokenTrie::Node>& nodes = tokens_->nodes();
  for (size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& n = nodes[i];
    const int32_t next = states_.after_byte(way[size_t(n.depth)], n.byte);
    if (next == MatchStates::kDead) {
      i = size_t(n.after);
      continue;
    }
    way[size_t(n.depth) + 1] = next;
    if (n.first_token != n.last_token && reaches(next))
      for (const TokenId id : tokens_->tokens(n)) allow(mask.words, id);
    ++i;
  }
  for (const auto& [reference, next] : states_.token_moves(state_)) {
    if (!reaches(next)) continue;
    if (!grammar_->automaton().tokens()[size_t(reference)].negated) {
      allow(mask.words, named_[size_t(reference)]);
      continue;
    }
    for (TokenId id = 0; size_t(id) < tokens_->vocab_size(); ++id)
      if (names(reference, id)) allow(mask.words, id);
  }
  if (states_.complete(state_))
    for (const TokenId id : tokens_->end_tokens()) allow(mask.words, id);
  return mask;
}

int32_t GrammarMatcher::after_token(TokenId id) {
  for (const auto& [reference, next] : states_.token_moves(state_))
    if (names(reference, id)) return next;
  if (tokens_->bytes(id).empty() || tokens_->is_end(id)) return MatchStates::kDead;
  int32_t state = state_;
  for (const char c : tokens_->bytes(id)) {
    state = states_.after_byte(state, static_cast<unsigned char>(c));
    if (state == MatchStates::kDead) break;
  }
  return state;
}

void GrammarMatcher::accept(TokenId id) {
  if (id < 0 || size_t(id) >= tokens_->vocab_size())
    throw invalid("grammar: token ", id, " is not in the vocabulary of ", tokens_->vocab_size(), " tokens");
  if (ended_) throw invalid("grammar: token ", id, " follows the end of the text");
  const int32_t next = after_token(id);
  if (next != MatchStates::kDead) {
    state_ = next;
  } else if (tokens_->is_end(id) && states_.complete(state_)) {
    ended_ = true;
  } else {
    throw invalid("grammar: token ", id, " may not follow here");
  }
}

bool GrammarMatcher::accept_text(std::string_view text) {
  int32_t state = state_;
  for (const char c : text) {
    state = ended_ ? MatchStates::kDead : states_.after_byte(state, static_cast<unsigned char>(c));
    if (state == MatchStates::kDead) return false;
  }
  state_ = state;
  return true;
}

}  // namespace rlx::llm
