#include "rlx/ir/real_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "rlx/base/error.h"

namespace rlx {
namespace {

// Whether a decimal number is 1 or more. from_chars says that one is out of range, not on which side.
bool is_large(std::string_view digits) {
  const size_t mark = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, mark);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  int64_t exponent = int64_t(point) - int64_t(first) - (first < point ? 1 : 0);
  if (mark == std::string_view::npos) return exponent >= 0;
  std::string_view power = digits.substr(mark + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  int64_t value = 0;
  if (std::from_chars(power.data(), power.data() + power.size(), value).ec != std::errc())
    return !power.starts_with('-');
  return value >= -exponent;
}

}  // namespace

double parse_real(std::string_view text, size_t& pos) {
  double value = 0;
  const char* begin = text.data() + pos;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error == std::errc::invalid_argument) throw invalid("expected a number");
  const std::string_view digits(begin, size_t(end - begin));
  if (error == std::errc::result_out_of_range) {
    if (is_large(digits))
      throw invalid(digits.substr(0, 40), " is beyond the range of f64; write inf or -inf");
    value = digits.starts_with('-') ? -0.0 : 0.0;
  }
  pos += digits.size();
  return value;
}

}  // namespace rlx
