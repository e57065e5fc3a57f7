#pragma once

#include <string_view>

namespace rlx::io {

bool valid_utf8(std::string_view);

}  // namespace rlx::io
