// Whether a text fits an expression without rules.
#pragma once

#include <string_view>

#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

bool matches(const ExpressionPtr&, std::string_view text);
/// Whether a regular expression matches a part of the text.
bool matches_part(std::string_view pattern, std::string_view text);

}  // namespace rlx::llm
