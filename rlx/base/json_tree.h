// The document behind JsonView: what the reader makes. For the sources of the JSON reader only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/json.h"

namespace rlx::detail {

struct JsonTree {
  std::string source;                 // for messages
  std::string owned_text;             // when the document has a copy
  std::shared_ptr<const void> owner;  // otherwise what keeps the text
  std::vector<JsonNode> nodes;
  std::vector<std::unique_ptr<char[]>> decoded;  // strings that had escapes
};

/// Fills the nodes from the text.
void read_json(JsonTree&, std::string_view text, JsonRules);

}  // namespace rlx::detail
