// Lines of a given width from a line of words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::text::jinja {

struct WrapOptions {
  int64_t width = 79;            // characters
  bool break_long_words = true;  // cut a word that is longer than a line
  bool break_on_hyphens = true;  // a line may end after the hyphen of a compound word
};

/// Spaces at the ends of lines are dropped, but not those before the first word.
std::vector<std::string> wrap_words(std::string_view line, const WrapOptions& options);

}  // namespace rlx::text::jinja
