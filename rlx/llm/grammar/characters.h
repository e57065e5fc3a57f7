// Sets of characters, as the classes of grammars and regular expressions have them.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

namespace rlx::llm {

/// Code points as ranges in ascending order that do not touch.
class CharacterSet {
 public:
  struct Range {
    char32_t first, last;
    friend bool operator==(const Range&, const Range&) = default;
  };
  static constexpr char32_t kLast = 0x10FFFF;

  CharacterSet() = default;
  CharacterSet(std::initializer_list<Range> ranges) {
    for (const Range& r : ranges) add(r.first, r.last);
  }
  /// Every character of well-formed UTF-8: no surrogates.
  static CharacterSet all();
  static CharacterSet of(std::u32string_view characters);

  void add(char32_t first, char32_t last);
  void add(char32_t code) { add(code, code); }
  void add(const CharacterSet& other);
  bool has(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

  /// What is in this and not in `other`; in both.
  CharacterSet without(const CharacterSet& other) const;
  CharacterSet both(const CharacterSet& other) const;

  friend bool operator==(const CharacterSet&, const CharacterSet&) = default;

 private:
  std::vector<Range> ranges_;
};

/// A range of bytes at each place of an encoded character.
struct ByteRange {
  unsigned char first, last;
};

/// Sequences of byte ranges that together spell exactly the characters of the set. Four bytes reach to 0x3FFFFF: a set that holds
/// codes above kLast takes the lead bytes from 0xF5 on, which begin no character of Unicode.
std::vector<std::vector<ByteRange>> byte_sequences(const CharacterSet&);

}  // namespace rlx::llm
