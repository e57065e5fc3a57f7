// Reading of decimal numbers, for texts of literals and attributes.
#pragma once

#include <string_view>

namespace rlx {

/// A decimal number, inf or nan at `pos`. What lies beyond f64 is a user error, what is too small for it zero.
double parse_real(std::string_view text, size_t& pos);

}  // namespace rlx
