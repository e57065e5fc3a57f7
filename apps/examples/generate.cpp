// Text from a language model, piece by piece: generate MODEL [PROMPT]
#include <cstdio>
#include <exception>

#include "rlx/llm/language_model.h"

int main(int argc, char** argv) try {
  if (argc < 2) return std::puts("usage: generate MODEL [PROMPT]"), 2;
  rlx::llm::LanguageModel model = rlx::llm::LanguageModel::open(argv[1], {.context = 256});
  const auto show = [](const rlx::llm::GeneratedToken& token) {
    return std::printf("%.*s", int(token.text.size()), token.text.data()) >= 0;
  };
  const rlx::llm::Generation g =
      model.generate(argc > 2 ? argv[2] : "Once upon a time", {.max_tokens = 24}, show);
  std::printf("\n[%zu tokens, %s]\n", g.tokens.size(), std::string(rlx::llm::finish_name(g.finish)).c_str());
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
