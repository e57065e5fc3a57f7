// WordPiece: the longest token that begins the word, then the longest that continues it, and so on.
#pragma once

#include <optional>
#include <string>

#include "rlx/text/model.h"
#include "rlx/text/trie.h"

namespace rlx::text {

struct WordPieceOptions {
  std::string unknown_token = "[UNK]";
  std::string continuing_prefix = "##";  // marks tokens that continue a word
  int64_t max_characters = 100;          // a longer word is unknown
};

class WordPiece final : public Model {
 public:
  WordPiece(Vocab vocab, const WordPieceOptions& options);

 protected:
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const override;

 private:
  Trie trie_;
  uint32_t continuing_;  // the node after the prefix; Trie::kNone when no token continues a word
  std::string unknown_token_;
  std::optional<TokenId> unknown_;
  size_t max_characters_;
};

}  // namespace rlx::text
