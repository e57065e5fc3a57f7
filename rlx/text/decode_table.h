// Decoding by table: what each token spells, computed once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/text/added_tokens.h"
#include "rlx/text/decoder.h"
#include "rlx/text/model.h"
#include "rlx/text/tokenizer.h"

namespace rlx::text {

/// A decoder begins with steps that rewrite each token for itself: their result is stored for every id. Where
/// byte fallback, fusing, or nothing follows, decoding is copying from the table; any other order runs the
/// steps one after the other.
class DecodeTable {
 public:
  DecodeTable(const Vocab& vocab, const AddedTokens& added, std::optional<Decoder> decoder);

  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options) const;

  size_t size() const { return entries_.size(); }
  /// The spelling in the vocabulary or of the added token; empty when there is none.
  std::string_view token(TokenId id) const;
  bool is_special(TokenId id) const { return entry(id) && entry(id)->special; }
  /// The byte a <0xNN> token stands for, where the decoder puts bytes together; -1 for any other token.
  int fallback_byte(TokenId id) const { return entry(id) ? entry(id)->fallback_byte : -1; }

 private:
  /// What decoding starts from: of an added token the form that is looked for, else the token.
  std::string_view spelling(TokenId id) const;

  struct Entry {
    uint64_t offset = 0;
    uint32_t length = 0;
    int16_t fallback_byte = -1;  // of a <0xNN> token, when the decoder has that step
    bool used = false, special = false;
  };
  const Entry* entry(TokenId id) const {
    return id >= 0 && size_t(id) < entries_.size() && entries_[size_t(id)].used ? &entries_[size_t(id)]
                                                                                : nullptr;
  }
  std::string first_form(TokenId id) const;
  std::string decode_by_steps(std::span<const TokenId> ids, bool skip_special) const;

  const Vocab& vocab_;
  const AddedTokens& added_;
  Decoder decoder_;
  size_t each_steps_ = 0;    // leading steps of kind `each`: their result is in the table
  size_t joined_steps_ = 0;  // steps that the copying loop stands for
  bool tabled_ = true;
  bool has_fallback_ = false;
  std::string bytes_;
  std::vector<Entry> entries_;
};

}  // namespace rlx::text
