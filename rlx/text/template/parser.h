// Tokens to syntax tree.
#pragma once

#include <string_view>

#include "rlx/text/template/ast.h"

namespace rlx::text::jinja {

/// Throws `template: line L, column C: ...` for what is wrong or not part of the subset.
Block parse(std::string_view source);

}  // namespace rlx::text::jinja
