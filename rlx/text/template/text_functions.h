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
std::string indent(std::string_view s, std::string_view margin, bool first, bool blank);

}  // namespace rlx::text::jinja
