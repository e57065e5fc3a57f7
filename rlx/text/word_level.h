// WordLevel: a word is a token as a whole, or unknown.
#pragma once

#include <string>

#include "rlx/text/model.h"

namespace rlx::text {

class WordLevel final : public Model {
 public:
  /// A word without a token is an error where the vocabulary has no unknown token.
  WordLevel(Vocab vocab, std::string unknown_token)
      : Model(std::move(vocab)),
        unknown_token_(std::move(unknown_token)),
        unknown_(vocab_.find(unknown_token_)) {}

 protected:
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const override;

 private:
  std::string unknown_token_;
  std::optional<TokenId> unknown_;
};

}  // namespace rlx::text
