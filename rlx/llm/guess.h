// Guesses of what a text goes on with, for decoding that checks many tokens at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rlx/text/vocab.h"

namespace rlx::llm {

using text::TokenId;
class LanguageModel;

/// Something that guesses how a text goes on, for the model to check many tokens at a time.
class Guesser {
 public:
  virtual ~Guesser() = default;
  /// At most `most` tokens; none when there is no idea.
  virtual std::vector<TokenId> guess(std::span<const TokenId> text, int64_t most) = 0;
  /// What the model made of tokens first .. of the text, for a head that reads it; empty where none is asked for. What was
  /// known of tokens behind `first` is void.
  virtual void follow(int64_t first, std::span<const float> hidden) { (void)first, (void)hidden; }
};

/// What followed when the last tokens stood in the text before.
class PromptLookup final : public Guesser {
 public:
  /// At most `tokens` at a time.
  explicit PromptLookup(int64_t tokens, size_t longest = 4, size_t shortest = 2)
      : tokens_(tokens), longest_(longest), shortest_(shortest) {}

  /// The longest end of the text, of `longest` down to `shortest` tokens, that stands earlier too decides; the last such place
  /// counts.
  std::vector<TokenId> guess(std::span<const TokenId> text, int64_t most) override;

 private:
  int64_t tokens_;
  size_t longest_, shortest_;
};

/// What a smaller model with the same vocabulary would write.
class DraftModel final : public Guesser {
 public:
  DraftModel(LanguageModel& model, int64_t tokens) : model_(model), tokens_(tokens) {}
  std::vector<TokenId> guess(std::span<const TokenId> text, int64_t most) override;

 private:
  LanguageModel& model_;
  int64_t tokens_;
};

}  // namespace rlx::llm
