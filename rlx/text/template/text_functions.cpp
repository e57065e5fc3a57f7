#include "rlx/text/template/text_functions.h"

#include <utf8proc.h>

#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

void append_upper(std::string& out, char32_t code) {
  if (code == 0xDF) return (void)out.append("SS");
  append_utf8(out, char32_t(utf8proc_toupper(utf8proc_int32_t(code))));
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
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    c == kBadByte ? (void)out.append(bytes) : append_lowercase(out, c);
  });
  return out;
}

std::string capitalize(std::string_view s) {
  if (s.empty()) return {};
  const size_t first = decode_utf8(s, 0).length;
  return upper(s.substr(0, first)) + lower(s.substr(first));
}

std::string title(std::string_view s) {
  std::string out;
  bool inside = false;
  const CharClasses classes;
  for_each_character(s, [&](char32_t c, std::string_view bytes) {
    if (c == kBadByte) return (void)out.append(bytes);
    inside ? append_lowercase(out, c) : append_upper(out, c);
    inside = classes[c] & kLetter;
  });
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
      if (((classes[c.code] & kSpace) != 0) != spaces) break;
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
  for (size_t begin = 0; begin < s.size();) {
    const size_t at = std::min(s.find_first_of("\r\n", begin), s.size());
    size_t next = at < s.size() ? at + 1 : at;
    if (at + 1 < s.size() && s[at] == '\r' && s[at + 1] == '\n') ++next;
    lines.emplace_back(s.substr(begin, (keep_ends ? next : at) - begin));
    begin = next;
  }
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
