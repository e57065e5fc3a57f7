// The head of a model that guesses the token behind the next.
//
// It reads token i + 1 together with what the model made of token i, and gives token i + 2. So it follows the model: what the model made
// of the tokens of a text is handed to it, and a guess begins with the pairs it has not read yet; further guesses read the
// head's own results.
#pragma once

#include "rlx/llm/decoder.h"
#include "rlx/llm/guess.h"

namespace rlx::llm {

class DraftHead final : public Guesser {
 public:
  /// At most `tokens` guesses at a time. A model without such a head is a user error.
  DraftHead(const models::Model& model, int64_t tokens, int64_t capacity, CompileOptions compile);

  void set_tokens(int64_t tokens) { tokens_ = tokens; }
  /// What the model made of tokens first .. of the text, [n, hidden]; nothing is known of those behind them.
  void follow(int64_t first, std::span<const float> hidden) override;
  std::vector<TokenId> guess(std::span<const TokenId> text, int64_t most) override;
  int64_t runs() const { return runs_; }

 private:
  TokenId read(std::span<const TokenId> ids, int64_t position, std::span<const float> hidden);

  int64_t tokens_, width_, capacity_;
  MemoryLayout layout_;
  std::unique_ptr<CompiledGraph> graph_;
  std::vector<float> hidden_;  // of all tokens of the text, [known, hidden]
  int64_t read_ = 0;           // pairs that its own memory holds
  int64_t runs_ = 0;
  std::vector<float> last_;  // its result for the last token read
  std::vector<int32_t> pages_, positions_;
};

}  // namespace rlx::llm
