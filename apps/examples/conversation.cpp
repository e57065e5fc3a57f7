// A conversation that is remembered: conversation MODEL MESSAGE...
#include <cstdio>
#include <exception>

#include "rlx/llm/conversation.h"

int main(int argc, char** argv) try {
  if (argc < 3) return std::puts("usage: conversation MODEL MESSAGE..."), 2;
  rlx::llm::LanguageModel model = rlx::llm::LanguageModel::open(argv[1], {.context = 1024});
  rlx::llm::Conversation talk(model, "You are a helpful assistant.", {.max_tokens = 48});
  for (int i = 2; i < argc; ++i) {
    const rlx::llm::Generation answer = talk.ask(argv[i]);
    std::printf("user: %s\nassistant: %s\n[%lld of %lld tokens remembered]\n", argv[i], answer.text.c_str(),
                (long long)answer.reused_tokens, (long long)answer.prompt_tokens);
  }
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
