#include "rlx/io/utf8.h"

#include <simdjson.h>

namespace rlx::io {

bool valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

}  // namespace rlx::io
