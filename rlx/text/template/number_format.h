// Numbers and strings in the columns that format specifications ask for: `%-8.3f` and `{:>8.3f}`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/text/template/operations.h"

namespace rlx::text::jinja {

struct FormatSpec {
  std::string fill = " ";  // one character
  char align = 0;          // < > ^ =; 0: left for text, right for numbers
  char sign = '-';         // - + or a space
  bool alternate = false;  // 0x, 0o, 0b
  char group = 0;          // , or _ between thousands
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

/// Reads `[[fill]align][sign][#][0][width][,][.precision][type]`.
FormatSpec read_format_spec(std::string_view text, Place place);

/// A value as `format(value, spec)` gives it; throws where the type of the value and the spec do not match.
std::string formatted(const Value& value, const FormatSpec& spec, Place place, Budget& budget);
std::string formatted_integer(int64_t value, const FormatSpec& spec, Place place, Budget& budget);
std::string formatted_float(double value, const FormatSpec& spec, Place place, Budget& budget);
std::string formatted_text(std::string_view text, const FormatSpec& spec, Place place, Budget& budget);

}  // namespace rlx::text::jinja
