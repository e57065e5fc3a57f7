#include "rlx/llm/guess.h"

#include <algorithm>

#include "rlx/llm/language_model.h"

namespace rlx::llm {

std::vector<TokenId> PromptLookup::guess(std::span<const TokenId> text, int64_t most) {
  const int64_t wanted = std::min(tokens_, most);
  if (wanted <= 0 || text.empty()) return {};
  for (size_t n = std::min(longest_, text.size() - 1); n >= shortest_ && n > 0; --n) {
    const auto end = text.last(n);
    for (size_t at = text.size() - n; at-- > 0;) {
      if (!std::equal(end.begin(), end.end(), text.begin() + long(at))) continue;
      const auto behind = text.subspan(at + n);
      const auto part = behind.first(std::min(behind.size(), size_t(wanted)));
      return {part.begin(), part.end()};
    }
  }
  return {};
}

std::vector<TokenId> DraftModel::guess(std::span<const TokenId> text, int64_t most) {
  const int64_t wanted = std::min(tokens_, most);
  if (wanted <= 0 || int64_t(text.size()) + wanted > model_.decoder().capacity()) return {};
  // It need not be the model that writes: end tokens are guesses like others.
  return model_.generate_ids(text, {.max_tokens = wanted, .sampling = {.temperature = 0}, .ignore_end = true})
      .tokens;
}

}  // namespace rlx::llm
