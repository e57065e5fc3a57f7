#include "rlx/text/template/word_wrap.h"

#include "rlx/text/template/text_functions.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

struct Character {
  char32_t code;
  std::string_view bytes;
};

std::vector<Character> characters(std::string_view text) {
  std::vector<Character> out;
  for (size_t i = 0; i < text.size();) {
    const Decoded c = decode_utf8(text, i);
    out.push_back({c.code, text.substr(i, c.length)});
    i += c.length;
  }
  return out;
}

// What stays together: runs of blanks, and words, which hyphens may divide: a hyphen that follows two letters
// (or a letter, a hyphen and a letter) and comes before two letters ends a part of a word.
std::vector<std::string_view> chunks(std::string_view line, bool hyphens) {
  std::vector<std::string_view> out;
  const CharClasses classes;
  for (size_t begin = 0; begin < line.size();) {
    const bool blank = is_blank(line[begin]);
    size_t end = begin;
    while (end < line.size() && is_blank(line[end]) == blank) ++end;
    const std::string_view word = line.substr(begin, end - begin);
    begin = end;
    if (blank || !hyphens) {
      out.push_back(word);
      continue;
    }
    const std::vector<Character> all = characters(word);
    const auto letter = [&](size_t i) { return i < all.size() && (classes[all[i].code] & kLetter); };
    const auto hyphen = [&](size_t i) { return i < all.size() && all[i].code == '-'; };
    size_t from = 0, bytes = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      bytes += all[i].bytes.size();
      if (!hyphen(i) || i < 2) continue;
      const bool before = letter(i - 1) && (letter(i - 2) || (i >= 3 && hyphen(i - 2) && letter(i - 3)));
      const bool after = letter(i + 1) && (letter(i + 2) || (hyphen(i + 2) && letter(i + 3)));
      if (!before || !after) continue;
      out.push_back(word.substr(from, bytes - from));
      from = bytes;
    }
    if (from < word.size()) out.push_back(word.substr(from));
  }
  return out;
}

bool all_blank(std::string_view text) {
  for (const char c : text)
    if (!is_blank(c)) return false;
  return true;
}

}  // namespace

std::vector<std::string> wrap_words(std::string_view line, const WrapOptions& options) {
  std::vector<std::string> lines;
  std::vector<std::string_view> waiting = chunks(line, options.break_on_hyphens);
  const auto width = size_t(options.width);
  for (size_t at = 0; at < waiting.size();) {
    std::vector<std::string_view> parts;
    size_t length = 0;
    if (all_blank(waiting[at]) && !lines.empty()) ++at;
    while (at < waiting.size()) {
      const size_t size = count_characters(waiting[at]);
      if (length + size > width) break;
      parts.push_back(waiting[at++]);
      length += size;
    }
    if (at < waiting.size() && count_characters(waiting[at]) > width) {
      const size_t room = width - length;
      if (options.break_long_words) {
        size_t cut = prefix_bytes(waiting[at], int64_t(room));
        const size_t mark = waiting[at].substr(0, cut).rfind('-');
        if (options.break_on_hyphens && mark != std::string_view::npos && mark > 0 &&
            waiting[at].substr(0, mark).find_first_not_of('-') != std::string_view::npos)
          cut = mark + 1;
        parts.push_back(waiting[at].substr(0, cut));
        waiting[at].remove_prefix(cut);
      } else if (parts.empty()) {
        parts.push_back(waiting[at++]);
      }
    }
    if (!parts.empty() && all_blank(parts.back())) parts.pop_back();
    if (parts.empty()) continue;
    std::string& out = lines.emplace_back();
    for (const std::string_view part : parts) out.append(part);
  }
  return lines;
}

}  // namespace rlx::text::jinja
