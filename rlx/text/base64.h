// Base64 (RFC 4648), for the binary fields of tokenizer files.
#pragma once

#include <string>
#include <string_view>

namespace rlx::text {

/// `where` names the field in messages.
std::string decode_base64(std::string_view text, std::string_view where);

}  // namespace rlx::text
