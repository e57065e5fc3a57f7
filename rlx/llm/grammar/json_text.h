// The parts of JSON texts as grammars.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

/// White space between the parts of a text: none, one blank, or a new line and its indent.
ExpressionPtr json_space();
/// One character of the set inside of a string: as it is, or escaped where JSON asks for that.
ExpressionPtr json_character(const CharacterSet&);
/// Any character of a string, escaped or not.
ExpressionPtr json_any_character();
/// A string without escapes that is none of these.
ExpressionPtr json_string_except(const std::vector<std::string>& names);

struct NumberRange {
  std::optional<double> least, most;
  bool above = false, below = false;  // the bound itself is left out
};
/// Integers, or decimal numbers, of a range. Bounds beyond 1e15 are user errors.
ExpressionPtr json_integer(const NumberRange& range = {});
ExpressionPtr json_number(const NumberRange& range = {});
/// A number with at most so many digits behind the point.
ExpressionPtr json_decimal(const NumberRange& range, int most_digits);

/// The inside of a string in a format of JSON schema; null for a name of another origin, which restricts nothing there.
ExpressionPtr json_format(std::string_view name);

}  // namespace rlx::llm
