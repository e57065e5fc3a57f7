#include "rlx/text/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstring>
#include <memory>

namespace rlx::text {

Decoded decode_multibyte(const char* at, const char* end) {
  const auto byte = [&](int i) { return static_cast<unsigned char>(at[i]); };
  const auto tail = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  const auto left = end - at;
  const unsigned lead = byte(0);
  if (lead >= 0xC2 && lead <= 0xDF) {
    if (left >= 2 && tail(1)) return {char32_t((lead & 31) << 6 | (byte(1) & 63)), 2};
  } else if ((lead & 0xF0) == 0xE0) {
    if (left >= 3 && tail(1) && tail(2)) {
      const char32_t code = (lead & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
      if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3};
    }
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    if (left >= 4 && tail(1) && tail(2) && tail(3)) {
      const char32_t code = (lead & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
      if (code >= 0x10000 && code < 0x110000) return {code, 4};
    }
  }
  return {kBadByte, 1};
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(char(c));
  } else if (c < 0x800) {
    const char bytes[] = {char(0xC0 | c >> 6), char(0x80 | (c & 63))};
    out.append(bytes, 2);
  } else if (c < 0x10000) {
    const char bytes[] = {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
    out.append(bytes, 3);
  } else {
    const char bytes[] = {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)),
                          char(0x80 | (c & 63))};
    out.append(bytes, 4);
  }
}

Decoded last_utf8(std::string_view text) {
  for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    const Decoded c = decode_utf8(text, text.size() - length);
    if (c.code != kBadByte && c.length == length) return c;
  }
  return {kBadByte, 1};
}

size_t valid_prefix(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + i, 8);
      if ((word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const Decoded c = decode_utf8(text, i);
    if (c.code == kBadByte) return i;
    i += c.length;
  }
  return i;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) i += decode_utf8(text, i).length;
  return count;
}

namespace {

// Bytes at the start of `text` that begin a well-formed character but do not finish it; 0 when there are
// none. The second byte has a narrower range after E0, ED, F0 and F4 (no overlong forms, surrogates or codes
// above 10FFFF).
size_t truncated_subpart(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const size_t need = lead >= 0xC2 && lead <= 0xDF   ? 2
                      : (lead & 0xF0) == 0xE0        ? 3
                      : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                     : 0;
  if (need == 0) return 0;
  size_t n = 1;
  for (; n < need && n < text.size(); ++n) {
    unsigned low = 0x80, high = 0xBF;
    if (n == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(n) < low || byte(n) > high) break;
  }
  return n;
}

}  // namespace

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Decoded c = decode_utf8(text, i);
    if (c.code != kBadByte) {
      out.append(text.substr(i, c.length));
      i += c.length;
      continue;
    }
    out.append("\xEF\xBF\xBD");
    const size_t part = truncated_subpart(text.substr(i));
    i += part ? part : 1;
  }
  return out;
}

size_t complete_prefix(std::string_view text) {
  // Only the last three bytes can belong to an unfinished character.
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t start = text.size() - back;
    const auto byte = static_cast<unsigned char>(text[start]);
    if ((byte & 0xC0) == 0x80) continue;
    if (byte < 0x80) break;
    if (decode_utf8(text, start).code != kBadByte) break;
    return truncated_subpart(text.substr(start)) == back ? start : text.size();
  }
  return text.size();
}

uint8_t char_class_slow(char32_t code) {
  if (code >= kBadByte) return 0;
  uint8_t bits = 0;
  switch (utf8proc_category(utf8proc_int32_t(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      bits = kLetter | kWord;
      break;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      bits = kNumber | kWord;
      break;
    case UTF8PROC_CATEGORY_NO:
      bits = kNumber;
      break;
    case UTF8PROC_CATEGORY_MN:
      bits = kNonspacing | kMark | kWord;
      break;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      bits = kMark | kWord;
      break;
    case UTF8PROC_CATEGORY_PC:
      bits = kPunctuation | kWord;
      break;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      bits = kPunctuation;
      break;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      bits = kControl;
      break;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      bits = kSpace;
      break;
    default:
      break;
  }
  if ((code >= 9 && code <= 13) || code == 0x85) bits |= kSpace;
  // Join controls, and the letters in circles and squares, which Unicode counts as alphabetic.
  if (code == 0x200C || code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) ||
      (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
      (code >= 0x1F170 && code <= 0x1F189))
    bits |= kWord;
  return bits;
}

const uint8_t* bmp_classes() {
  static const std::unique_ptr<uint8_t[]> table = [] {
    auto made = std::make_unique<uint8_t[]>(0x10000);
    for (char32_t c = 0; c < 0x10000; ++c) made[c] = char_class_slow(c);
    return made;
  }();
  return table.get();
}

std::string_view unicode_version() { return utf8proc_unicode_version(); }

bool is_decimal_digit(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return code < kBadByte && utf8proc_category(utf8proc_int32_t(code)) == UTF8PROC_CATEGORY_ND;
}

bool is_space(char32_t code) { return CharClasses()[code] & kSpace; }

void append_lowercase(std::string& out, char32_t code) {
  if (code < 0x80) {
    out.push_back(code >= 'A' && code <= 'Z' ? char(code + 32) : char(code));
  } else if (code == 0x130) {
    out.append("i\xCC\x87");  // the one character whose lower case is two: i and a combining dot
  } else {
    append_utf8(out, char32_t(utf8proc_tolower(utf8proc_int32_t(code))));
  }
}

namespace {

struct ByteAlphabet {
  std::array<char16_t, 256> to_char{};
  std::array<int16_t, 512> to_byte{};
};

constexpr ByteAlphabet make_byte_alphabet() {
  ByteAlphabet a;
  for (int16_t& b : a.to_byte) b = -1;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    const int c = printable ? b : next++;
    a.to_char[b] = char16_t(c);
    a.to_byte[c] = int16_t(b);
  }
  return a;
}

constexpr ByteAlphabet kByteAlphabet = make_byte_alphabet();

}  // namespace

char32_t byte_to_char(uint8_t byte) { return kByteAlphabet.to_char[byte]; }
int char_to_byte(char32_t code) {
  return code < kByteAlphabet.to_byte.size() ? kByteAlphabet.to_byte[code] : -1;
}

}  // namespace rlx::text
