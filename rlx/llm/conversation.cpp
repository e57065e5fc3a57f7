#include "rlx/llm/conversation.h"

#include "rlx/text/value.h"

namespace rlx::llm {

Conversation::Conversation(LanguageModel& model, std::string system, GenerateOptions options)
    : model_(model), system_(std::move(system)), options_(std::move(options)) {
  clear();
}

void Conversation::clear() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({"system", system_});
}

void Conversation::forget_last() {
  for (int i = 0; i < 2 && !messages_.empty() && messages_.back().role != "system"; ++i) messages_.pop_back();
}

Generation Conversation::ask(std::string_view message, const OnToken& on_token) {
  text::List list;
  const auto add = [&](const Message& m) {
    text::Dict d;
    d.set("role", text::Value(m.role));
    d.set("content", text::Value(m.content));
    list.emplace_back(std::move(d));
  };
  for (const Message& m : messages_) add(m);
  const Message asked{"user", std::string(message)};
  add(asked);
  // The template writes the special tokens out, the first one too.
  const std::string prompt = model_.chat_prompt(text::Value(std::move(list)));
  const std::vector<TokenId> ids = model_.tokenizer().encode(prompt, {.add_special = false}).ids;
  Generation answer = model_.generate_ids(ids, options_, on_token);
  messages_.push_back(asked);
  messages_.push_back({"assistant", answer.text});
  tokens_ = int64_t(ids.size() + answer.tokens.size());
  return answer;
}

}  // namespace rlx::llm
