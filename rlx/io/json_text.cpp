#include "rlx/io/json_text.h"

#include "rlx/base/error.h"
#include "rlx/io/utf8.h"

namespace rlx::io {

void check_json_depth(std::string_view text, std::string_view source) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) {
        throw invalid(source, ": JSON at offset ", i, " nests deeper than ", kMaxJsonDepth, " levels");
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

std::string json_quote(std::string_view text) {
  if (!valid_utf8(text)) throw invalid("json: text of ", text.size(), " bytes is not valid UTF-8");
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr char kHex[] = "0123456789abcdef";
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
  return out += '"';
}

}  // namespace rlx::io
