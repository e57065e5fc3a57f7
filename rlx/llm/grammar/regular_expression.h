// Regular expressions as grammars.
//
// Characters, . [classes] (groups) (?:groups) | * + ? {m} {m,} {m,n} (and their lazy forms, which match the same texts),
// \d \w \s \D \W \S as ECMAScript has them (ASCII; \s with Unicode spaces), \t \n \r \f \v \0 \xHH \uHHHH \u{H...} \cX, and \p{L} \p{N} \p{P}
// \p{M} \p{Z...} in short or long names. ^ and $ stand at the ends of alternatives only. Look-around, back references and word
// boundaries are no grammar and are refused.
#pragma once

#include <string_view>

#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

/// What of a text a pattern matches: all of it, or any part, as in a JSON schema.
enum class RegexScope : uint8_t { whole, part };

/// Mistakes and what is not regular are user errors with the place in the pattern.
ExpressionPtr parse_regular_expression(std::string_view pattern, RegexScope = RegexScope::whole);

}  // namespace rlx::llm
