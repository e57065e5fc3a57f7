#include "rlx/text/template/number_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "rlx/text/template/lexer.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Digits at the start of `text`, which they are taken from.
int64_t take_number(std::string_view& text, Place place) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) throw error_at(place, "a number in a format is missing or too large");
  text.remove_prefix(size_t(end - text.data()));
  return value;
}

bool begins_with_digit(std::string_view text) { return !text.empty() && text[0] >= '0' && text[0] <= '9'; }

// `body` in its column; a sign and a prefix stay in front of filling that goes behind them.
std::string padded(std::string_view front, std::string_view body, const FormatSpec& spec, char usual,
                   Place place, Budget& budget) {
  const size_t length = count_characters(front) + count_characters(body);
  const size_t width = spec.width > 0 ? size_t(spec.width) : 0;
  budget.text(place, width);
  const size_t fill = width > length ? width - length : 0;
  const char align = spec.align ? spec.align : usual;
  const size_t left = align == '<' || align == '=' ? 0 : align == '^' ? fill / 2 : fill;
  std::string out;
  const auto repeat = [&](size_t times) {
    for (size_t i = 0; i < times; ++i) out.append(spec.fill);
  };
  repeat(left);
  out.append(front);
  if (align == '=') repeat(fill);
  out.append(body);
  if (align != '=') repeat(fill - left);
  return out;
}

// Separators between groups of digits, counted from the right of the whole part.
std::string grouped(std::string_view digits, char separator, size_t size) {
  if (!separator) return std::string(digits);
  size_t whole = 0;
  const auto is_digit = [&](char c) {
    return (c >= '0' && c <= '9') || (size == 4 && ((c | 32) >= 'a' && (c | 32) <= 'f'));
  };
  while (whole < digits.size() && is_digit(digits[whole])) ++whole;
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out.append(digits.substr(whole));
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string printed(char type, int precision, bool alternate, double value) {
  const char format[] = {
      '%', alternate ? '#' : '.', alternate ? '.' : '*', alternate ? '*' : type, alternate ? type : '\0',
      '\0'};
  const int size = std::snprintf(nullptr, 0, format, precision, value);
  std::string out(size_t(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), format, precision, value);
  out.resize(size_t(size));
  return out;
}

// Without a type a number is shown as str() shows it, with a precision as %g with a point in it.
std::string shown_plainly(double value, int64_t precision) {
  std::string out;
  if (precision < 0) {
    append_text(out, value);
    return out;
  }
  out = printed('g', int(precision ? precision : 1), false, value);
  if (out.find_first_of(".e") == out.npos) out.append(".0");
  return out;
}

}  // namespace

FormatSpec read_format_spec(std::string_view text, Place place) {
  FormatSpec spec;
  const std::string whole(text);
  if (!text.empty()) {
    const size_t first = decode_utf8(text, 0).length;
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      text.remove_prefix(first + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  const auto skip = [&](char c) {
    const bool there = text.starts_with(c);
    if (there) text.remove_prefix(1);
    return there;
  };
  for (const char sign : {'+', '-', ' '})
    if (skip(sign)) spec.sign = sign;
  spec.alternate = skip('#');
  if (text.starts_with('0')) {
    if (!spec.align) spec.align = '=', spec.fill = "0";
    text.remove_prefix(1);
  }
  if (begins_with_digit(text)) spec.width = take_number(text, place);
  for (const char group : {',', '_'})
    if (skip(group)) spec.group = group;
  if (skip('.')) spec.precision = take_number(text, place);
  if (!text.empty()) spec.type = text[0], text.remove_prefix(1);
  if (!text.empty()) throw error_at(place, cat("'", whole, "' is no format specification"));
  return spec;
}

std::string formatted_text(std::string_view text, const FormatSpec& spec, Place place, Budget& budget) {
  if ((spec.type && spec.type != 's') || spec.group || spec.align == '=')
    throw error_at(place, "the format of a string has a type, a group or an alignment of numbers");
  if (spec.precision >= 0) {
    size_t end = 0;
    for (int64_t i = 0; i < spec.precision && end < text.size(); ++i) end += decode_utf8(text, end).length;
    text = text.substr(0, end);
  }
  return padded("", text, spec, '<', place, budget);
}

std::string formatted_integer(int64_t value, const FormatSpec& spec, Place place, Budget& budget) {
  if (spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)
    return formatted_float(double(value), spec, place, budget);
  if (spec.precision >= 0) throw error_at(place, "the format of an integer has a precision");
  if (spec.type == 'c') {
    if (value < 0 || value >= int64_t(kBadByte)) throw error_at(place, cat(value, " is no character"));
    std::string character;
    append_utf8(character, char32_t(value));
    return padded("", character, spec, '<', place, budget);
  }
  int base = 10;
  std::string prefix;
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n':
      break;
    case 'b':
      base = 2, prefix = "0b";
      break;
    case 'o':
      base = 8, prefix = "0o";
      break;
    case 'x':
      base = 16, prefix = "0x";
      break;
    case 'X':
      base = 16, prefix = "0X";
      break;
    default:
      throw error_at(place, cat("an integer has no format '", spec.type, "'"));
  }
  char buffer[80];
  const uint64_t magnitude = value < 0 ? uint64_t(0) - uint64_t(value) : uint64_t(value);
  std::string digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr);
  if (spec.type == 'X')
    for (char& c : digits) c = c >= 'a' ? char(c - 32) : c;
  return padded(sign_of(value < 0, spec) + (spec.alternate ? prefix : ""),
                grouped(digits, spec.group, base == 10 ? 3 : 4), spec, '>', place, budget);
}

std::string formatted_float(double value, const FormatSpec& spec, Place place, Budget& budget) {
  if (spec.precision > 0) budget.text(place, size_t(spec.precision));
  if (spec.precision > 100'000) throw error_at(place, cat("a precision of ", spec.precision));
  const double magnitude = std::abs(value);
  const int precision = spec.precision < 0 ? 6 : int(spec.precision);
  std::string digits;
  switch (spec.type) {
    case 0:
      digits = shown_plainly(magnitude, spec.precision);
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      digits = printed(spec.type, precision, spec.alternate, magnitude);
      break;
    case 'n':
      digits = printed('g', precision, spec.alternate, magnitude);
      break;
    case '%':
      digits = printed('f', precision, spec.alternate, magnitude * 100) + "%";
      break;
    default:
      throw error_at(place, cat("a number has no format '", spec.type, "'"));
  }
  return padded(sign_of(std::signbit(value) && !std::isnan(value), spec), grouped(digits, spec.group, 3),
                spec, '>', place, budget);
}

std::string formatted(const Value& value, const FormatSpec& spec, Place place, Budget& budget) {
  if (value.is_bool()) return formatted_integer(value.as_bool(), spec, place, budget);
  if (value.is_int()) return formatted_integer(value.as_int(), spec, place, budget);
  if (value.is_double()) return formatted_float(value.as_double(), spec, place, budget);
  return formatted_text(to_text(value, place, budget), spec, place, budget);
}

}  // namespace rlx::text::jinja
