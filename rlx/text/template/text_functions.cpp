#include "rlx/text/template/text_functions.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "rlx/text/template/long_upper.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

const LongUpper* find_long_upper(char32_t code) {
  if (code < kLongUpper[0].code) return nullptr;
  const auto* found = std::lower_bound(std::begin(kLongUpper), std::end(kLongUpper), code,
                                       [](const LongUpper& u, char32_t c) { return u.code < c; });
  return found != std::end(kLongUpper) && found->code == code ? found : nullptr;
}

void append_upper(std::string& out, char32_t code) {
  if (const LongUpper* several = find_long_upper(code)) {
    for (const char32_t c : several->upper)
      if (c) append_utf8(out, c);
    return;
  }
  append_utf8(out, char32_t(utf8proc_toupper(utf8proc_int32_t(code))));
}

bool is_cased(char32_t c) {
  if (c >= kBadByte) return false;
  const auto category = utf8proc_category(utf8proc_int32_t(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

// The first letter of a word: of what becomes several letters only the first is large.
void append_title(std::string& out, char32_t code) {
  const auto single = char32_t(utf8proc_totitle(utf8proc_int32_t(code)));
  // utf8proc gives the sharp s its capital form, which is no part of the title case of Unicode.
  const bool one = single != code && code != 0xDF;
  const LongUpper* several = one ? nullptr : find_long_upper(code);
  if (!several) return append_utf8(out, single);
  bool large = false;
  for (const char32_t c : several->upper) {
    if (!c) break;
    large ? append_lowercase(out, c) : append_utf8(out, c);
    large |= is_cased(c);
  }
}

// Calls f(code, bytes) for each character.
template <class F>
void for_each_character(std::string_view s, F f) {
  for (size_t i = 0; i < s.size();) {
    const Decoded c = decode_utf8(s, i);
    f(c.code, s.substr(i, c.length));
    i += c.length;
  }
}

// Characters that case looks through: marks, modifiers, and points within words.
bool is_case_ignorable(char32_t code) {
  switch (utf8proc_category(utf8proc_int32_t(code))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2018 || code == 0x2019;
  }
}

// Whether a letter with case comes next, behind what case looks through.
bool word_goes_on(std::string_view rest) {
  for (size_t i = 0; i < rest.size();) {
    const Decoded c = decode_utf8(rest, i);
    if (c.code == kBadByte || !is_case_ignorable(c.code)) return is_cased(c.code);
    i += c.length;
  }
  return false;
}

}  // namespace

std::string upper(std::string_view s) {
  std::string out;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    c == kBadByte ? (void)out.append(bytes) : append_upper(out, c);
  });
  return out;
}

std::string lower(std::string_view s) {
  std::string out;
  bool inside = false;  // of a word: a letter with case came before
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
    if (c == kBadByte) {
      out.append(bytes);
    } else if (c == kSigma && inside &&
               !word_goes_on(s.substr(size_t(bytes.data() - s.data()) + bytes.size()))) {
      append_utf8(out, kFinalSigma);
    } else {
      append_lowercase(out, c);
    }
    if (c == kBadByte || !is_case_ignorable(c)) inside = is_cased(c);
  });
  return out;
}

std::string capitalize(std::string_view s) {
  std::string out;
  bool first = true;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == kBadByte) {
      out.append(bytes);
    } else {
      first ? append_title(out, c) : append_lowercase(out, c);
    }
    first = false;
  });
  return out;
}

std::string title(std::string_view s) {
  std::string out;
  bool inside = false;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == kBadByte) return (void)out.append(bytes);
    inside ? append_lowercase(out, c) : append_title(out, c);
    inside = is_cased(c);
  });
  return out;
}

std::string title_words(std::string_view s) {
  const CharClasses classes;
  std::string out;
  bool inside = false;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == kBadByte) return (void)out.append(bytes);
    const bool opens = (classes[c] & kSpace) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (opens) {
      out.append(bytes);
    } else {
      inside ? append_lowercase(out, c) : append_upper(out, c);
    }
    inside = !opens;
  });
  return out;
}

std::string swap_case(std::string_view s) {
  std::string out;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == kBadByte) return (void)out.append(bytes);
    std::string low;
    append_lowercase(low, c);
    low == bytes ? append_upper(out, c) : (void)out.append(low);
  });
  return out;
}

std::string case_folded(std::string_view s) {
  std::string out;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == kBadByte) return (void)out.append(bytes);
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto n = utf8proc_decompose_char(utf8proc_int32_t(c), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (int i = 0; i < n && i < 8; ++i) append_utf8(out, char32_t(folded[i]));
  });
  return out;
}

bool has_case(std::string_view s, LetterCase wanted) {
  bool any = false, all = true, inside = false;
  for_each_character(s, [&](char32_t c, std::string_view) {
    const bool cased = is_cased(c);
    if (cased) {
      const auto category = utf8proc_category(utf8proc_int32_t(c));
      const bool small = category == UTF8PROC_CATEGORY_LL;
      any = true;
      all &= wanted == LetterCase::lower   ? small
             : wanted == LetterCase::upper ? category == UTF8PROC_CATEGORY_LU
                                           : small == inside;
    }
    inside = cased;
  });
  return any && all;
}

size_t prefix_bytes(std::string_view s, int64_t characters) {
  size_t at = 0;
  for (; characters > 0 && at < s.size(); --characters) at += decode_utf8(s, at).length;
  return at;
}

std::string centered(std::string_view s, int64_t width, std::string_view fill) {
  const auto length = int64_t(count_characters(s));
  if (width <= length) return std::string(s);
  const int64_t total = width - length;
  const int64_t left = total / 2 + (total & width & 1);  // the odd one goes left in a column of odd width
  std::string out;
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(s);
  for (int64_t i = left; i < total; ++i) out.append(fill);
  return out;
}

std::string without_tabs(std::string_view s, int64_t size) {
  std::string out;
  int64_t column = 0;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == '\t') {
      if (size <= 0) return;
      const int64_t spaces = size - column % size;
      out.append(size_t(spaces), ' ');
      column += spaces;
    } else {
      out.append(bytes);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  });
  return out;
}

int64_t count_words(std::string_view s) {
  const CharClasses classes;
  int64_t count = 0;
  bool inside = false;
  for_each_character(s, [&](char32_t c, std::string_view) {
    const bool word = c == '_' || (classes[c] & (kLetter | kNumber));
    count += word && !inside;
    inside = word;
  });
  return count;
}

std::string escape_markup(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (const char c : s) {
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&#34;");
        break;
      case '\'':
        out.append("&#39;");
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

namespace {

// The character an entity such as amp or #34 stands for; 0 when it is not known.
char32_t entity(std::string_view name) {
  constexpr std::pair<std::string_view, char32_t> kNamed[] = {{"amp", '&'},  {"lt", '<'},    {"gt", '>'},
                                                              {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xA0}};
  for (const auto& [known, code] : kNamed)
    if (known == name) return code;
  if (!name.starts_with('#') || name.size() > 9) return 0;
  name.remove_prefix(1);
  const bool hex = name.starts_with('x') || name.starts_with('X');
  if (hex) name.remove_prefix(1);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, hex ? 16 : 10);
  const bool valid = error == std::errc() && end == name.data() + name.size() && code < kBadByte &&
                     !(code >= 0xD800 && code < 0xE000);
  return valid ? char32_t(code) : 0;
}

std::string without_entities(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    const size_t end = s[i] == '&' ? s.substr(0, std::min(s.size(), i + 12)).find(';', i) : s.npos;
    const char32_t code = end == s.npos ? 0 : entity(s.substr(i + 1, end - i - 1));
    if (code) {
      append_utf8(out, code);
      i = end;
    } else {
      out.push_back(s[i]);
    }
  }
  return out;
}

// From `open` to the next `close` after it, again and again, while both are there.
std::string without_spans(std::string_view s, std::string_view open, std::string_view close) {
  std::string out;
  size_t kept = 0;
  for (size_t at = s.find(open); at != s.npos; at = s.find(open, kept)) {
    const size_t end = s.find(close, at + open.size());
    if (end == s.npos) break;
    out.append(s.substr(kept, at - kept));
    kept = end + close.size();
  }
  return out.append(s.substr(kept));
}

}  // namespace

std::string without_tags(std::string_view s) {
  const std::string plain = without_spans(without_spans(s, "<!--", "-->"), "<", ">");
  std::string out;
  for (const std::string& word : split(plain, "", -1)) out.append(out.empty() ? "" : " ").append(word);
  return without_entities(out);
}

std::string url_quoted(std::string_view s, std::string_view safe) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : s) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos ||
                       safe.find(c) != safe.npos;
    if (plain) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      const char escape[] = {'%', kHex[byte >> 4], kHex[byte & 15]};
      out.append(escape, 3);
    }
  }
  return out;
}

std::string strip(std::string_view s, std::string_view set, bool left, bool right) {
  const CharClasses classes;
  const auto goes = [&](char32_t c, std::string_view bytes) {
    if (set.empty()) return (classes[c] & kSpace) != 0 || (c >= 0x1C && c <= 0x1F);
    return set.find(bytes) != set.npos;
  };
  size_t begin = s.size(), end = 0, at = 0;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (!goes(c, bytes)) begin = std::min(begin, at), end = at + bytes.size();
    at += bytes.size();
  });
  if (end == 0) return left || right ? std::string() : std::string(s);
  if (!left) begin = 0;
  if (!right) end = s.size();
  return std::string(s.substr(begin, end - begin));
}

std::vector<std::string> split(std::string_view s, std::string_view separator, int64_t limit) {
  std::vector<std::string> parts;
  const auto more = [&] { return limit < 0 || int64_t(parts.size()) < limit; };
  if (!separator.empty()) {
    size_t begin = 0;
    for (size_t at = s.find(separator); at != s.npos && more(); at = s.find(separator, begin)) {
      parts.emplace_back(s.substr(begin, at - begin));
      begin = at + separator.size();
    }
    parts.emplace_back(s.substr(begin));
    return parts;
  }
  const CharClasses classes;
  size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < s.size()) {
      const Decoded c = decode_utf8(s, at);
      const bool space = (classes[c.code] & kSpace) || (c.code >= 0x1C && c.code <= 0x1F);
      if (space != spaces) break;
      at += c.length;
    }
  };
  for (skip(true); at < s.size(); skip(true)) {
    const size_t begin = at;
    if (!more()) {
      parts.push_back(strip(s.substr(begin), "", false, true));
      break;
    }
    skip(false);
    parts.emplace_back(s.substr(begin, at - begin));
  }
  return parts;
}

std::vector<std::string> split_lines(std::string_view s, bool keep_ends) {
  std::vector<std::string> lines;
  size_t begin = 0, at = 0;
  while (at < s.size()) {
    const Decoded c = decode_utf8(s, at);
    const bool ends = (c.code >= '\n' && c.code <= '\r') || (c.code >= 0x1C && c.code <= 0x1E) ||
                      c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    size_t next = at + c.length;
    if (ends) {
      if (c.code == '\r' && next < s.size() && s[next] == '\n') ++next;
      lines.emplace_back(s.substr(begin, (keep_ends ? next : at) - begin));
      begin = next;
    }
    at = next;
  }
  if (begin < s.size()) lines.emplace_back(s.substr(begin));
  return lines;
}

std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t limit) {
  std::string out;
  int64_t done = 0;
  const auto more = [&] { return limit < 0 || done < limit; };
  if (from.empty()) {  // before each character and at the end
    for_each_character(s, [&](char32_t, std::string_view bytes) {
      if (more()) out.append(to), ++done;
      out.append(bytes);
    });
    if (more()) out.append(to);
    return out;
  }
  size_t kept = 0;
  for (size_t at = s.find(from); at != s.npos && more(); at = s.find(from, kept), ++done) {
    out.append(s.substr(kept, at - kept)).append(to);
    kept = at + from.size();
  }
  return out.append(s.substr(kept));
}

std::string indent(std::string_view s, std::string_view margin, bool first, bool blank) {
  std::string out;
  size_t begin = 0;
  for (bool is_first = true;; is_first = false) {
    const size_t at = std::min(s.find('\n', begin), s.size());
    const std::string_view line = s.substr(begin, at - begin);
    if (is_first ? first : (blank || !line.empty())) out.append(margin);
    out.append(line);
    if (at == s.size()) return out;
    out.push_back('\n');
    begin = at + 1;
  }
}

}  // namespace rlx::text::jinja
