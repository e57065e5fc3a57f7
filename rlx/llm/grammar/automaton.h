// Rules as automata over bytes that call each other.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

/// One automaton for each rule, their states numbered together. A state moves by bytes, jumps, or calls a rule and goes on at
/// another state when that is done. Jumps are kept, not worked out: of a repetition of what may be empty each part would reach all
/// that follow it, and the moves would grow with the square of the parts. Immutable.
class Automaton {
 public:
  /// A rule that may call itself before it has read anything, a rule without a body and a grammar that no text fits are
  /// user errors; `where` starts them.
  Automaton(const RuleSet&, const std::string& where);

  struct ByteMove {
    unsigned char first, last;
    int32_t target;
  };
  struct Call {
    int32_t rule_start, target;  // target: where the caller goes on; kDone: it is done then
  };
  struct TokenMove {
    int32_t reference;  // of tokens()
    int32_t target;
  };
  struct State {
    std::vector<ByteMove> bytes;
    std::vector<Call> calls;
    std::vector<TokenMove> tokens;
    std::vector<int32_t> jumps;  // states that are reached without reading
    bool ends = false;           // the rule may be done here
  };
  static constexpr int32_t kDone = -1;
  /// Bytes to the end of the rule when there are none.
  static constexpr int64_t kNever = int64_t(1) << 60;

  int32_t start() const { return start_; }
  const State& state(int32_t s) const { return states_[size_t(s)]; }
  size_t size() const { return states_.size(); }
  const std::vector<TokenReference>& tokens() const { return tokens_; }
  /// The fewest bytes from a state to the end of its rule; a token named by the grammar counts as one.
  int64_t bytes_to_end(int32_t s) const { return s == kDone ? 0 : distance_[size_t(s)]; }

 private:
  class Builder;
  int32_t start_ = 0;
  std::vector<State> states_;
  std::vector<TokenReference> tokens_;
  std::vector<int64_t> distance_;
};

}  // namespace rlx::llm
