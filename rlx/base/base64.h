// RFC 4648 base64 with padding.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

std::string encode_base64(std::span<const std::byte>);
/// Anything that encode_base64 could not have written is an error.
std::vector<std::byte> decode_base64(std::string_view);

}  // namespace rlx
