// Building messages from values without iostreams: cat("axis ", 3, " of ", shape).
//
// A type joins in by an overload `void append_text(std::string&, const T&)` in its own namespace.
// Numbers print in the shortest form that reads back to the same value.
#pragma once

#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Types that need no overload of their own.
inline void append_text(std::string& out, std::string_view s) { out.append(s); }
inline void append_text(std::string& out, const char* s) { out.append(s); }
inline void append_text(std::string& out, char c) { out.push_back(c); }
inline void append_text(std::string& out, bool b) { out.append(b ? "true" : "false"); }

template <class T>
  requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
void append_text(std::string& out, T value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

/// Shortest round-trip form; always contains '.', 'e', "inf" or "nan", so it never reads as an integer.
void append_text(std::string& out, double value);
inline void append_text(std::string& out, float value) { append_text(out, double(value)); }

/// Elements separated by ", " inside brackets.
template <class T>
void append_text(std::string& out, std::span<const T> items) {
  out.push_back('[');
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out.append(", ");
    append_text(out, items[i]);
  }
  out.push_back(']');
}
template <class T>
void append_text(std::string& out, const std::vector<T>& items) {
  append_text(out, std::span<const T>(items));
}

/// The text of all values, one behind the other.
template <class... Args>
std::string cat(const Args&... args) {
  std::string out;
  (append_text(out, args), ...);
  return out;
}

/// "a, b, c" — for lists of names in messages.
template <class Range>
std::string join(const Range& items, std::string_view separator = ", ") {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out.append(separator);
    append_text(out, item);
    first = false;
  }
  return out;
}

/// The candidate closest to `name` by edit distance, or empty when nothing is near; for "did you mean".
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace rlx
