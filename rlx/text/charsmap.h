// SentencePiece's "precompiled charsmap": a normalisation table as a double-array trie.
//
//   u32 n        bytes of the trie, little-endian like everything here
//   u32[n / 4]   trie units: bit 31 with label 0 marks a value; XOR addressing as in darts-clone
//   char[]       the replacements, each ended by a NUL; a value is an offset into them
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::text {

class Charsmap {
 public:
  Charsmap() = default;
  /// `where` names the table in messages.
  Charsmap(std::string_view bytes, std::string_view where);

  bool empty() const { return units_.empty(); }

  struct Match {
    size_t length;  // bytes of the key
    std::string_view replacement;
  };
  /// The longest, or the shortest, key that is a prefix of `text`.
  std::optional<Match> longest_prefix(std::string_view text) const { return prefix(text, true); }
  std::optional<Match> shortest_prefix(std::string_view text) const { return prefix(text, false); }

 private:
  std::optional<Match> prefix(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace rlx::text
