#include "rlx/text/word_level.h"

#include "rlx/base/error.h"

namespace rlx::text {

void WordLevel::encode_word(std::string_view word, ModelScratch&, std::vector<Token>& tokens) const {
  std::optional<TokenId> id = vocab_.find(word);
  if (!id) id = unknown_;
  if (!id) throw missing_unknown("wordlevel", word, unknown_token_);
  tokens.push_back({*id, {0, uint32_t(word.size())}});
}

}  // namespace rlx::text
