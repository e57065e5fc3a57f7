// How far a text has come in a grammar, and which tokens may follow.
//
//   auto grammar = std::make_shared<const Grammar>(Grammar::from_gbnf("root ::= [0-9]+"));
//   GrammarMatcher m(grammar, tokens);
//   m.mask();          // a bit for each token
//   m.accept(token);
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "rlx/base/json.h"
#include "rlx/llm/grammar/automaton.h"
#include "rlx/llm/grammar/token_trie.h"

namespace rlx::llm {

/// A grammar that is ready to match; shared by the matchers of many texts.
class Grammar {
 public:
  /// GBNF (gbnf.h). Mistakes are user errors with line and column.
  static Grammar from_gbnf(std::string_view source, std::string_view root = "root");
  /// Texts that the whole pattern matches (regular_expression.h).
  static Grammar from_regex(std::string_view pattern);
  /// JSON texts that a schema allows (json_schema.h).
  static Grammar from_json_schema(JsonView schema);

  /// What it was compiled to.
  const Automaton& automaton() const { return automaton_; }

 private:
  explicit Grammar(const RuleSet& rules, const std::string& where) : automaton_(rules, where) {}
  Automaton automaton_;
};

/// All ways a text can have been read so far, as one number; texts that leave the same ways share it. Moves are computed when
/// first needed and kept, so that a text which stays in one place (a long string) costs one look-up for each byte.
class MatchStates {
 public:
  explicit MatchStates(std::shared_ptr<const Automaton>);

  static constexpr int32_t kDead = -1;
  /// The state of an empty text.
  int32_t start() const { return start_; }
  /// The state one byte further; kDead when the byte does not fit.
  int32_t after_byte(int32_t state, unsigned char byte) {
    const int32_t known = all_[size_t(state)].next[byte];
    return known != kUnknown ? known : find_next(state, byte);
  }
  /// Whether the text may end here.
  bool complete(int32_t state) const { return all_[size_t(state)].complete; }
  /// The fewest bytes to a complete text.
  int64_t bytes_to_end(int32_t state) const { return all_[size_t(state)].distance; }
  /// Moves by tokens that the grammar names: reference (of Automaton::tokens) and the state behind it.
  const std::vector<std::pair<int32_t, int32_t>>& token_moves(int32_t state);
  size_t size() const { return all_.size(); }
  /// Forgets all but one state, which gets the number returned.
  int32_t forget_but(int32_t state);

 private:
  static constexpr int32_t kUnknown = -2;
  static constexpr int32_t kNoFrame = -1;
  // Where a rule that was called goes on.
  struct Frame {
    int32_t state, below;
    int64_t distance;  // bytes to the end of the text from here
  };
  struct Item {
    int32_t state, frame;  // in a rule, and its caller
    auto operator<=>(const Item&) const = default;
  };
  struct Entry {
    std::vector<Item> items;
    bool complete = false;
    int64_t distance = 0;
    int32_t next[256];
    std::optional<std::vector<std::pair<int32_t, int32_t>>> tokens;
  };
  int32_t find_next(int32_t state, unsigned char byte);
  int32_t frame(int32_t state, int32_t below);
  int64_t distance_of(const Item& item) const;
  /// The state of these places and all they reach without reading.
  int32_t intern(std::vector<Item> places);

  std::shared_ptr<const Automaton> automaton_;
  unsigned char alike_first_[256];  // of each byte: the first of those around it that every state reads alike
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, int32_t> frame_ids_;
  std::vector<Entry> all_;
  std::unordered_multimap<uint64_t, int32_t> ids_;  // by hash
  int32_t start_ = 0;
};

/// A text on its way through a grammar.
class GrammarMatcher {
 public:
  GrammarMatcher(std::shared_ptr<const Grammar>, std::shared_ptr<const TokenTrie>);

  /// Bit id % 32 of word id / 32 tells whether the token may follow; end tokens may where the text may end. With `budget`, only
  /// tokens after which the text can be completed in as many tokens as are left then (a byte a token). Valid until the next
  /// call.
  std::span<const uint32_t> mask(std::optional<int64_t> budget = {});
  /// A token that may not follow is a user error. After an end token nothing may follow.
  void accept(TokenId);
  /// Reads bytes; false, and nothing changes, when they do not fit.
  bool accept_text(std::string_view);
  /// Whether the text so far is one of the grammar's.
  bool may_end() const { return !ended_ && states_.complete(state_); }
  /// Whether an end token came.
  bool ended() const { return ended_; }
  /// The fewest bytes to a complete text.
  int64_t bytes_to_end() const { return ended_ ? 0 : states_.bytes_to_end(state_); }

 private:
  struct Mask {
    std::vector<uint32_t> words;
    int64_t furthest = 0;  // the most bytes to the end after an allowed token
  };
  int32_t after_token(TokenId);
  bool names(int32_t reference, TokenId id) const;
  Mask make_mask(std::optional<int64_t> budget);

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenTrie> tokens_;
  MatchStates states_;
  int32_t state_;
  bool ended_ = false;
  std::vector<TokenId> named_;  // by token reference
  std::unordered_map<int32_t, Mask> masks_;
  Mask limited_;
};

}  // namespace rlx::llm
