// Reading JSON that others wrote, with the limits every reader of this room wants.
#pragma once

#include <string>
#include <string_view>

namespace rlx::io {

inline constexpr int kMaxJsonDepth = 64;

/// Throws a user error when brackets nest deeper than kMaxJsonDepth: some JSON code recurses.
void check_json_depth(std::string_view text, std::string_view source);

/// `text` as a JSON string, quoted and escaped. Invalid UTF-8 is a user error.
std::string json_quote(std::string_view text);

}  // namespace rlx::io
