#include "rlx/text/python_float.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace rlx::text {

void append_python_float(std::string& out, double value) {
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char text[40];
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const std::string_view written(text,
                                 size_t(std::to_chars(text, text + sizeof text, value, form).ptr - text));
  out.append(written);
  if (plain && written.find('.') == written.npos) out.append(".0");
}

}  // namespace rlx::text
