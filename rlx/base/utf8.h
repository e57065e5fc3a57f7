// Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx {

/// Bytes of the well-formed character at `at`, 1 to 4; 0 when there is none. `at` must be before `end`.
size_t utf8_length(const char* at, const char* end);

bool valid_utf8(std::string_view text);

/// `code` must be a character: below U+110000 and no surrogate.
void append_utf8(std::string& out, char32_t code);

}  // namespace rlx
