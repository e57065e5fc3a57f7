// The document behind Json. For sources only: the library's header is heavy.
#pragma once

#include <nlohmann/json.hpp>

#include "rlx/io/json.h"

namespace rlx::io {

using JsonDocument = nlohmann::ordered_json;

struct Json::Access {
  static const JsonDocument& node(const Json& json) { return *static_cast<const JsonDocument*>(json.node_); }
  static Json wrap(JsonDocument document, std::string source);
  static Json child(const Json& parent, const JsonDocument& node, const std::string& step);
};

/// Parses with the checks of Json::parse.
JsonDocument parse_json_document(std::string_view text, std::string_view source);

}  // namespace rlx::io
