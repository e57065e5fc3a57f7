// JSON text to values and back.
#pragma once

#include <string>
#include <string_view>

#include "rlx/text/value.h"

namespace rlx::text {

/// Parses one JSON document; `where` names it in messages. Nesting is limited to 200 levels.
Value parse_json(std::string_view text, std::string_view where);

struct JsonStyle {
  int indent = -1;  // spaces per level; below zero everything is on one line
  std::string_view item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
  bool ascii = false;  // write characters above U+007F as \u escapes
};

/// Python's json.dumps(value, ensure_ascii=style.ascii, ...). A value JSON has no form for is an error.
void append_json(std::string& out, const Value& value, const JsonStyle& style = {});
void append_json_string(std::string& out, std::string_view text, bool ascii = false);

}  // namespace rlx::text
