// From the syntax of Oniguruma, in which tokenizers write their patterns, to that of PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace rlx::text {

/// The pattern as PCRE2 reads it with PCRE2_MULTILINE, UTF and UCP on. What is no pattern in either stays what it is, so that
/// PCRE2 tells what is wrong with it.
std::string to_pcre2(std::string_view pattern);

}  // namespace rlx::text
