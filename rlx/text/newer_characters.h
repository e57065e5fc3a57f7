// Characters that utf8proc knows and PCRE2 does not: its tables can be of an older Unicode.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/unicode.h"

namespace rlx::text {

/// Each such character has a stand-in: one that both know, of the same category and the same length in UTF-8.
/// Patterns see the stand-in, so that they follow the newer Unicode as everything else does.
class NewerCharacters {
 public:
  static const NewerCharacters& get();

  /// The text with stand-ins, in `buffer`; the text itself when it has no newer character.
  std::string_view replaced(std::string_view text, std::string& buffer) const;

 private:
  struct Span {
    char32_t first, last, stand_in;
  };

  NewerCharacters();
  static size_t lead_of(std::string_view text, size_t at) {
    return size_t(static_cast<unsigned char>(text[at])) << 8 | static_cast<unsigned char>(text[at + 1]);
  }
  /// 0 when PCRE2 knows the character.
  char32_t stand_in(char32_t code) const;

  std::vector<Span> spans_;
  std::bitset<1 << 16> leads_;  // first two bytes of newer characters
};

}  // namespace rlx::text
