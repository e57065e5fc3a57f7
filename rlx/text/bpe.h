// Byte pair encoding: start from single characters (or bytes), then merge the neighbouring pair of lowest
// rank, leftmost first, until no pair has a rank.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rlx/text/model.h"

namespace rlx::text {

struct Merge {
  TokenId left, right, result;
  uint32_t rank;  // pairs may share a rank: then the leftmost goes first
};

struct BpeOptions {
  std::optional<TokenId> unknown;  // for characters without a token; without it they vanish
  std::string
      missing_unknown;  // the unknown token that the file names and the vocabulary lacks: needing it is an error
  bool fuse_unknown = false;    // neighbouring unknown characters give one token
  bool byte_fallback = false;   // a character without a token becomes the tokens <0xNN> of its bytes
  bool ignore_merges = false;   // a word that is a token as a whole is that token
  bool whole_newlines = false;  // the same, for words of line ends only
  bool bytes = false;           // words are raw bytes, the vocabulary spells them in the byte-level alphabet
  // What merges make and the vocabulary lacks, by their spelling; their ids follow those of the vocabulary. Such a token leads
  // to others; left over it falls apart into the bytes that spell themselves, and the other bytes vanish.
  std::vector<std::string> missing;
  std::vector<bool> unused;       // by id: a token that only leads to longer ones; left over it falls apart
  std::string continuing_prefix;  // written before each character of a word but the first
  std::string end_suffix;         // written after the last character of a word
};

class Bpe final : public Model {
 public:
  Bpe(Vocab vocab, std::span<const Merge> merges, BpeOptions options);

 protected:
  void encode_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const override;
  void encode_long(std::string_view word, ModelScratch& scratch, TokenSink& out) const override;

 private:
  struct PairSlot {
    TokenId left = -1, right = -1;
    uint32_t rank = 0;
    TokenId result = 0;
  };
  struct FrontSlot {
    TokenId left = -1, first = -1;
    uint32_t rank = 0;
  };
  static constexpr size_t kShortWord = 48;
  const PairSlot* find_pair(TokenId left, TokenId right) const;
  void first_symbols(std::string_view word, std::vector<Token>& symbols) const;
  /// A token for each byte of an unknown character; false, and nothing is appended, where one of them has none.
  bool spell_bytes(std::string_view bytes, Range range, std::vector<Token>& symbols) const;
  std::string_view spelling(TokenId id) const {
    return size_t(id) < vocab_.size() ? vocab_.text(id)
                                      : std::string_view(options_.missing[size_t(id) - vocab_.size()]);
  }
  void take_missing_apart(std::string_view word, std::vector<Token>& tokens) const;
  std::optional<TokenId> whole_word(std::string_view word) const;
  void encode_part(std::string_view part, ModelScratch& scratch, TokenSink& out) const;
  void take_apart(TokenId id, Range range, std::vector<Token>& tokens) const;
  void merge_word(std::string_view word, ModelScratch& scratch, std::vector<Token>& tokens) const;
  void merge_short(std::vector<Token>& symbols) const;
  void merge_long(std::vector<Token>& symbols, ModelScratch& scratch) const;
  uint32_t merge_window(std::span<const Token> symbols, uint32_t n, ModelScratch& scratch) const;
  void note_fronts() const;
  uint32_t front_rank(TokenId left, TokenId first) const;
  void note_joins(std::span<const Merge> merges);
  bool may_join(char32_t left, char32_t right) const;

  BpeOptions options_;
  std::vector<PairSlot> pairs_;        // open addressing
  std::vector<uint64_t> pair_filter_;  // a bit for the hash of each pair; most pairs of a text are no merge
  std::unordered_map<TokenId, std::pair<TokenId, TokenId>> halves_;  // of unused tokens
  size_t rank_count_ = 0;
  std::array<TokenId, 256> byte_tokens_;  // the token of each byte, or of <0xNN>; -1 when there is none
  bool all_byte_tokens_ = false;
  size_t longest_token_ = 0;                 // bytes of its spelling
  bool affixes_ = false;                     // a continuing prefix or an end suffix
  bool spelled_ = false;                     // every symbol that can merge spells its own text
  std::array<TokenId, 128> ascii_tokens_;    // single ASCII characters, when words are characters
  std::array<uint64_t, 256> ascii_joins_{};  // bit (a, b): some merge ends in a on its left and begins with b
  std::vector<uint64_t> joins_;              // the same for other characters; open addressing
  mutable std::once_flag fronts_made_;       // on the first word long enough to need them
  mutable std::vector<FrontSlot> fronts_;    // front_rank; open addressing
};

}  // namespace rlx::text
