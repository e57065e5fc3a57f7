// Tokens found in the text before anything else looks at it: `<|im_start|>`, `[MASK]`, ...
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rlx/text/normalizer.h"
#include "rlx/text/trie.h"
#include "rlx/text/vocab.h"

namespace rlx::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // only between non-word characters
  bool left_strip = false;   // takes the spaces before it
  bool right_strip = false;  // takes the spaces after it
  bool normalized = false;   // looked for in the normalised text, in its normalised form
  bool special = false;      // left out by decode when asked
  bool as_spelled = false;   // looked for in the normalised text, in its own form
  std::string shown;         // what decoding gives: the form that is looked for; set by AddedTokens
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  struct Part {
    Range range;
    TokenId id;  // -1: ordinary text
  };
  /// Cuts the text at the tokens that are looked for before (or after) normalisation: leftmost first, of
  /// several at one place the longest. Unless `special`, special tokens are text like any other, and other
  /// tokens are found inside them.
  void split(std::string_view text, bool after_normalization, bool special, std::vector<Part>& parts) const;

  bool any(bool after_normalization) const { return finders_[after_normalization][true].any; }
  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& list() const { return tokens_; }

 private:
  struct Finder {
    Trie trie;
    std::array<bool, 256> first_bytes{};
    bool any = false;
    int only = kNone;  // the first byte of all tokens, kSeveral when they differ

    static constexpr int kNone = -1, kSeveral = -2;
    void add(std::string_view content, int32_t token);
    /// The first place from `at` on where a token can begin.
    size_t next(std::string_view text, size_t at) const;
  };
  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, size_t> by_id_;
  Finder finders_[2][2];  // [after normalisation][special ones too]
};

}  // namespace rlx::text
