// Regular expressions over UTF-8 through PCRE2, compiled to machine code where the machine allows it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/unicode.h"

namespace rlx::text {

/// A compiled pattern; may be used by several threads at once.
///
/// Classes are those of unicode_version(): \s is White_Space, \d is Nd, \w as in CharClass. Bytes that are not UTF-8 match
/// nothing. A match that needs more than a fixed amount of backtracking is an error, not a hang.
class Regex {
 public:
  explicit Regex(std::string_view pattern);
  /// Matches the bytes of `text` and nothing else.
  static Regex literal(std::string_view text);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  const std::string& pattern() const { return pattern_; }

  /// What becomes of matches of no characters.
  enum class Empty { dropped, kept };

  /// Appends the matches in `text[within]`, left to right; look-around sees no further than `within`.
  void find_all(std::string_view text, Range within, std::vector<Range>& matches,
                Empty empty = Empty::dropped) const;

 private:
  struct Compiled;
  explicit Regex(std::string_view pattern, std::string translated);
  void find_in_valid(std::string_view text, uint32_t base, std::vector<Range>& matches, Empty empty) const;

  std::string pattern_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace rlx::text
