// One answer while it is written: chooses tokens, collects text, knows when to end.
#pragma once

#include "rlx/llm/language_model.h"
#include "rlx/llm/stop_text.h"

namespace rlx::llm {

class Writer {
 public:
  Writer(LanguageModel& model, std::span<const TokenId> prompt, const GenerateOptions& options,
         const OnToken& on_token);

  /// Chooses the next token from its logits and adds it. Nothing when the answer has ended; ended() then says so.
  std::optional<TokenId> write(std::span<const float> logits);
  bool ended() const { return ended_; }
  void end(Finish why);
  /// Tokens so far.
  const std::vector<TokenId>& tokens() const { return out_.tokens; }
  /// The answer; `seconds` and `runs` are the caller's to fill in.
  Generation take();

 private:
  bool is_end(TokenId id) const;
  void hand_on(TokenId id, float log_probability, const std::string& certain);

  LanguageModel& model_;
  std::span<const TokenId> prompt_;
  const GenerateOptions& options_;
  const OnToken& on_token_;
  std::optional<GrammarMatcher> matcher_;
  std::optional<text::StreamDecoder> stream_;
  StopText stop_;
  Generation out_;
  bool ended_ = false;
};

}  // namespace rlx::llm
