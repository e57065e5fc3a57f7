// Unigram language model (Kudo 2018): the segmentation whose token log-probabilities sum highest.
#pragma once

#include <array>
#include <optional>

#include "rlx/text/model.h"
#include "rlx/text/trie.h"

namespace rlx::text {

class Unigram final : public Model {
 public:
  /// scores[id] is the log-probability of a token. A character without a token costs ten less than the worst
  /// of them and is the `unknown` token, or the tokens <0xNN> of its bytes with byte_fallback.
  /// With `in_text`, only the tokens marked there are looked for in the text and count for the worst score.
  Unigram(Vocab vocab, std::vector<double> scores, std::optional<TokenId> unknown, bool byte_fallback,
          const std::vector<bool>* in_text = nullptr);

 protected:
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const override;

 private:
  void add_unknown(std::string_view word, Range range, std::vector<Token>& tokens) const;

  Trie trie_;
  std::vector<double> scores_;
  std::optional<TokenId> unknown_;
  double unknown_score_ = 0;
  std::array<TokenId, 256> byte_tokens_;  // -1 when there is none
  bool byte_fallback_;
};

}  // namespace rlx::text
