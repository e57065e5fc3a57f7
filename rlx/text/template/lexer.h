// Template text to tokens. Whitespace control is done here, with trim_blocks and lstrip_blocks on, which is
// how chat templates are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/text/template/ast.h"

namespace rlx::text::jinja {

enum class Tok {
  data,          // text outside of tags
  output_begin,  // {{
  output_end,
  block_begin,  // {%
  block_end,
  name,
  string,
  integer,
  number,
  op,
  end,  // of the template
};

struct Token {
  Tok kind;
  Place place;
  std::string text;  // data, name, decoded string, digits, operator
};

/// Throws `template: line L, column C: ...`.
std::vector<Token> tokenize(std::string_view source);

/// An error about a place in the template.
[[nodiscard]] Error error_at(Place place, const std::string& message);

}  // namespace rlx::text::jinja
