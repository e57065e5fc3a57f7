#include "rlx/text/wordpiece.h"

namespace rlx::text {

WordPiece::WordPiece(Vocab vocab, const WordPieceOptions& options) : Model(std::move(vocab)) {
  unknown_token_ = options.unknown_token;
  unknown_ = vocab_.find(unknown_token_);
  max_characters_ = options.max_characters < 0 ? 0 : size_t(options.max_characters);
  for (size_t id = 0; id < vocab_.size(); ++id)
    if (vocab_.has(TokenId(id))) trie_.set(vocab_.text(TokenId(id)), int32_t(id));
  continuing_ = trie_.walk(options.continuing_prefix);
}

void WordPiece::encode_word(std::string_view word, ModelScratch&, std::vector<Token>& tokens) const {
  const auto give_up = [&] {
    if (!unknown_) throw missing_unknown("wordpiece", word, unknown_token_);
    tokens.assign(1, {*unknown_, {0, uint32_t(word.size())}});
  };
  if (word.size() > max_characters_ && count_characters(word) > max_characters_) return give_up();
  for (uint32_t at = 0; at < word.size();) {
    const uint32_t from = at == 0 ? Trie::kRoot : continuing_;
    const Trie::Match m = from == Trie::kNone ? Trie::Match{} : trie_.longest(word.substr(at), from);
    if (m.length == 0) return give_up();
    tokens.push_back({m.value, {at, at + uint32_t(m.length)}});
    at += uint32_t(m.length);
  }
}

}  // namespace rlx::text
