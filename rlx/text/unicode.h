// UTF-8 and the character properties the tokenizers need. Properties come from utf8proc; unicode_version()
// says of which Unicode they are.
//
// Text is any byte string: a byte that is not part of well-formed UTF-8 decodes as one character kBadByte,
// which has no properties and is copied as it stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlx::text {

/// A half-open byte range.
struct Range {
  uint32_t begin = 0, end = 0;
  uint32_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

inline constexpr char32_t kBadByte = 0x110000;

struct Decoded {
  char32_t code;
  uint32_t length;  // bytes; 1 for kBadByte
};

Decoded decode_multibyte(const char* at, const char* end);

/// The character at `at`, which must be before `end`.
inline Decoded decode_utf8(const char* at, const char* end) {
  const auto lead = static_cast<unsigned char>(*at);
  if (lead < 0x80) return {lead, 1};
  return decode_multibyte(at, end);
}
inline Decoded decode_utf8(std::string_view text, size_t at) {
  return decode_utf8(text.data() + at, text.data() + text.size());
}
/// The character that ends `text`, which is not empty.
Decoded last_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code);
/// Length of the longest well-formed prefix.
size_t valid_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) { return valid_prefix(text) == text.size(); }
size_t count_characters(std::string_view text);

/// Each maximal ill-formed subsequence becomes U+FFFD (Unicode 3.9, "substitution of maximal subparts").
std::string replace_invalid_utf8(std::string_view text);

/// Length of the longest prefix that does not end inside a character that more bytes could complete.
size_t complete_prefix(std::string_view text);

enum CharClass : uint8_t {
  kLetter = 1,       // L*
  kNumber = 2,       // N*
  kSpace = 4,        // White_Space
  kPunctuation = 8,  // P*
  kNonspacing = 16,  // Mn
  kMark = 32,        // M*
  kWord = 64,        // \w of UTS 18: alphabetic, marks, decimal numbers, connector punctuation, join controls
  kControl = 128,    // Cc, Cf, Cs, Co
};

uint8_t char_class_slow(char32_t code);
const uint8_t* bmp_classes();  // one byte for each code below 0x10000

/// Bits of CharClass. Loops hold the table: `const CharClasses classes; classes[code]`.
class CharClasses {
 public:
  uint8_t operator[](char32_t code) const { return code < 0x10000 ? table_[code] : char_class_slow(code); }

 private:
  const uint8_t* table_ = bmp_classes();
};

/// The version of Unicode that classes, case, normal forms and patterns follow, as "15.0.0".
std::string_view unicode_version();

bool is_space(char32_t code);
bool is_decimal_digit(char32_t code);  // Nd
inline bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

/// Lower case of one character, appended; context is not looked at, so a final sigma is an ordinary one.
void append_lowercase(std::string& out, char32_t code);

/// The byte-level alphabet of GPT-2: each byte as one printable character, and back.
///   printable Latin-1 bytes stand for themselves, the 68 others are U+0100, U+0101, ... in order
char32_t byte_to_char(uint8_t byte);
int char_to_byte(char32_t code);  // -1 when it stands for no byte

}  // namespace rlx::text
