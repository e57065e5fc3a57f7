// Runs a parsed template.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "rlx/text/template/ast.h"
#include "rlx/text/value.h"

namespace rlx::text::jinja {

/// Renders with the given variables; `now` is what strftime_now shows.
std::string evaluate(const Block& block, const Dict& variables, const std::tm& now);

}  // namespace rlx::text::jinja
