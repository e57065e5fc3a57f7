// From simdjson's document to our values. Included by few files: the header behind it is large.
#pragma once

#include <simdjson.h>

#include <string_view>

#include "rlx/text/value.h"

namespace rlx::text {

inline constexpr size_t kMaxJsonDepth = 200;

/// Parses with simdjson; errors are `where: what is wrong`. The parser owns the document.
simdjson::dom::element parse_dom(simdjson::dom::parser& parser, std::string_view text,
                                 std::string_view where);

Value to_value(const simdjson::dom::element& element);

}  // namespace rlx::text
