// Walking over C++ text: words, strings, brackets.
#pragma once

#include <cctype>
#include <string>
#include <vector>

namespace emulated {

inline bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

inline size_t behind_space(const std::string& s, size_t at) {
  while (at < s.size() && std::isspace(static_cast<unsigned char>(s[at]))) ++at;
  return at;
}

/// Behind the string or the character that begins at `at`.
inline size_t behind_quote(const std::string& s, size_t at) {
  const char quote = s[at++];
  while (at < s.size() && s[at] != quote) at += s[at] == '\\' ? 2 : 1;
  return at + 1;
}

/// Behind the bracket that closes the one at `at`.
inline size_t behind_bracket(const std::string& s, size_t at) {
  int depth = 0;
  while (at < s.size()) {
    const char c = s[at];
    if (c == '"' || c == '\'') {
      at = behind_quote(s, at);
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return at + 1;
    ++at;
  }
  return s.size();
}

/// Where `word` stands next, outside of strings; npos where it does not.
inline size_t find_word(const std::string& s, const std::string& word, size_t from) {
  for (size_t at = from; at < s.size();) {
    if (s[at] == '"' || s[at] == '\'') {
      const bool digits = s[at] == '\'' && at > 0 && std::isdigit(static_cast<unsigned char>(s[at - 1]));
      at = digits ? at + 1 : behind_quote(s, at);
      continue;
    }
    if (in_word(s[at])) {
      size_t end = at;
      while (end < s.size() && in_word(s[end])) ++end;
      if (s.compare(at, end - at, word) == 0) return at;
      at = end;
      continue;
    }
    ++at;
  }
  return std::string::npos;
}

inline std::string trimmed(const std::string& s) {
  const size_t first = behind_space(s, 0);
  size_t last = s.size();
  while (last > first && std::isspace(static_cast<unsigned char>(s[last - 1]))) --last;
  return s.substr(first, last - first);
}

/// Parts between separators that no bracket holds.
inline std::vector<std::string> split_outside(const std::string& s, char separator) {
  std::vector<std::string> out;
  size_t begin = 0, at = 0;
  while (at < s.size()) {
    if (s[at] == '"' || s[at] == '\'') {
      at = behind_quote(s, at);
    } else if (s[at] == '(' || s[at] == '[' || s[at] == '{') {
      at = behind_bracket(s, at);
    } else if (s[at] == separator) {
      out.push_back(trimmed(s.substr(begin, at - begin)));
      begin = ++at;
    } else {
      ++at;
    }
  }
  out.push_back(trimmed(s.substr(begin)));
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

}  // namespace emulated
