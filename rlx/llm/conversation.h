// A conversation with a model: messages go in, answers come out, the model remembers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/llm/language_model.h"

namespace rlx::llm {

/// Who said it, and what.
struct Message {
  std::string role, content;
};

class Conversation {
 public:
  /// `system` may be empty. The model needs a chat template.
  explicit Conversation(LanguageModel& model, std::string system = {}, GenerateOptions options = {});

  /// The answer to a message; both become part of the conversation. An answer that was cancelled stays as far as it came.
  Generation ask(std::string_view message, const OnToken& on_token = {});
  /// Forgets all messages but that of the system.
  void clear();
  /// Takes the last message and its answer out.
  void forget_last();
  /// What was said so far, in order.
  const std::vector<Message>& messages() const { return messages_; }
  /// How the next answer is chosen; may be changed between answers.
  GenerateOptions& options() { return options_; }
  /// Tokens of the conversation when it was last read.
  int64_t tokens() const { return tokens_; }

 private:
  LanguageModel& model_;
  std::string system_;
  GenerateOptions options_;
  std::vector<Message> messages_;
  int64_t tokens_ = 0;
};

}  // namespace rlx::llm
