// String operations of templates, on UTF-8, as Python's str does them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::text::jinja {

std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string capitalize(std::string_view s);
std::string title(std::string_view s);
/// Removes the characters of `set` at the ends; with an empty `set`, white space.
std::string strip(std::string_view s, std::string_view set, bool left, bool right);
/// At white space when `separator` is empty; at most `limit` cuts unless it is negative.
std::vector<std::string> split(std::string_view s, std::string_view separator, int64_t limit);
std::vector<std::string> split_lines(std::string_view s, bool keep_ends);
std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t limit);
/// How many bytes the first `characters` take.
size_t prefix_bytes(std::string_view s, int64_t characters);
/// With `fill`, one character, on both sides; a wider text stays as it is.
std::string centered(std::string_view s, int64_t width, std::string_view fill);
std::string swap_case(std::string_view s);
std::string case_folded(std::string_view s);
/// Tabs to spaces, up to the next multiple of `size` columns.
std::string without_tabs(std::string_view s, int64_t size);
/// Words begin after blanks, hyphens and opening brackets; the rest of each is lower case.
std::string title_words(std::string_view s);
int64_t count_words(std::string_view s);

enum class LetterCase { lower, upper, title };
/// Whether there is a letter with case, and all of those have this one.
bool has_case(std::string_view s, LetterCase wanted);

/// & < > " ' as entities of HTML.
std::string escape_markup(std::string_view s);
/// Tags and comments taken out, runs of blanks made one space, entities replaced by what they stand for.
std::string without_tags(std::string_view s);
/// Percent-encoded, but for letters, digits, _.-~ and the characters of `safe`.
std::string url_quoted(std::string_view s, std::string_view safe);

std::string indent(std::string_view s, std::string_view margin, bool first, bool blank);

}  // namespace rlx::text::jinja
