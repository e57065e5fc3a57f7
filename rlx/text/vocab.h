// Tokens and their ids, both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::text {

using TokenId = int32_t;

/// Ids need not be dense: an id without a token has an empty text and `has` is false for it.
class Vocab {
 public:
  void reserve(size_t tokens, size_t bytes);

  /// Adds a token; returns false and changes nothing when the text or the id is taken already.
  bool add(std::string_view token, TokenId id);
  /// As add, but a text that is taken is found under this id from now on; the other id keeps its text.
  bool add_or_take(std::string_view token, TokenId id);

  std::optional<TokenId> find(std::string_view token) const;
  std::string_view text(TokenId id) const {
    const Entry& e = entries_[size_t(id)];
    return {bytes_.data() + e.offset, e.length};
  }
  bool has(TokenId id) const { return id >= 0 && size_t(id) < entries_.size() && entries_[size_t(id)].used; }

  /// One more than the largest id.
  size_t size() const { return entries_.size(); }
  size_t count() const { return count_; }

 private:
  struct Entry {
    uint64_t offset = 0;
    uint32_t length = 0;
    bool used = false;
  };
  void grow();
  bool insert(std::string_view token, TokenId id, bool takes);

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> slots_;  // high half: upper hash bits, low half: id + 1; 0 is free
  size_t count_ = 0;
};

/// Ids above this are refused: a table indexed by id must stay in proportion to the file it came from.
inline constexpr TokenId kMaxTokenId = (1 << 26) - 1;

/// How byte-fallback vocabularies spell a byte: <0x0A>. The second is -1 for any other text.
std::string byte_token_name(uint8_t byte);
int byte_token_value(std::string_view token);

}  // namespace rlx::text
