// JSON text to the values of templates and tokenizers, and back. Reader, quoter and limits are those of rlx/base/json.h.
#pragma once

#include <string>
#include <string_view>

#include "rlx/base/json.h"
#include "rlx/text/value.h"

namespace rlx::text {

/// What a part of a document says; integers beyond 64 bits become reals.
Value to_value(JsonView);
/// Reads one JSON document; `where` names it in messages.
Value parse_json(std::string_view text, std::string_view where);

struct JsonStyle {
  int indent = -1;  // spaces per level; below zero everything is on one line
  std::string_view item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
  bool ascii = false;  // write characters above U+007F as \u escapes
};

/// Python's json.dumps(value, ensure_ascii=style.ascii, ...). A value JSON has no form for is an error.
void append_json(std::string& out, const Value& value, const JsonStyle& style = {});

}  // namespace rlx::text
