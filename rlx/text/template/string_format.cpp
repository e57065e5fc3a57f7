#include "rlx/text/template/string_format.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "rlx/text/template/lexer.h"
#include "rlx/text/template/number_format.h"
#include "rlx/text/template/text_functions.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

std::string joined_text(const Value& v, bool repr, const FormatPlace& at) {
  std::string text = repr ? to_repr(v, at.place, at.budget) : to_text(v, at.place, at.budget);
  return at.markup && !v.is_markup() ? escape_markup(text) : text;
}

// repr() with every character beyond ASCII as an escape.
std::string ascii_repr(const Value& v, const FormatPlace& at) {
  constexpr char kHex[] = "0123456789abcdef";
  const std::string text = to_repr(v, at.place, at.budget);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const Decoded c = decode_utf8(text, i);
    i += c.length;
    if (c.code < 0x80) {
      out.push_back(char(c.code));
      continue;
    }
    const int digits = c.code < 0x100 ? 2 : c.code < 0x10000 ? 4 : 8;
    out.append(digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U");
    for (int d = digits - 1; d >= 0; --d) out.push_back(kHex[c.code >> (4 * d) & 15]);
  }
  return out;
}

class Percent {
 public:
  Percent(std::string_view format, const Value& values, const FormatPlace& at)
      : rest_(format), values_(values), at_(at) {}

  std::string run() {
    while (!rest_.empty()) {
      const size_t percent = std::min(rest_.find('%'), rest_.size());
      out_.append(rest_.substr(0, percent));
      rest_.remove_prefix(percent);
      if (rest_.empty()) break;
      rest_.remove_prefix(1);
      conversion();
      at_.budget.text(at_.place, out_.size());
    }
    const bool all_used = values_.is_dict() || (values_.is_list() && !values_.is_tuple()) || next_ >= count();
    if (!all_used) throw error_at(at_.place, "not all values of a format are used in it");
    return std::move(out_);
  }

 private:
  size_t count() const { return values_.is_tuple() ? values_.as_list().size() : 1; }
  Value next() {
    if (next_ >= count()) throw error_at(at_.place, "a format has fewer values than places for them");
    const size_t i = next_++;
    return values_.is_tuple() ? values_.as_list()[i] : values_;
  }
  bool skip(char c) {
    const bool there = rest_.starts_with(c);
    if (there) rest_.remove_prefix(1);
    return there;
  }
  std::optional<int64_t> number() {
    if (skip('*')) {
      const Value v = next();
      if (!v.is_int()) throw error_at(at_.place, "the width of a format is no integer");
      return v.as_int();
    }
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::invalid_argument) return std::nullopt;
    if (error != std::errc()) throw error_at(at_.place, "a number in a format is too large");
    rest_.remove_prefix(size_t(end - rest_.data()));
    return value;
  }

  // After the '%': [(name)][flags][width][.precision][h l L]type
  void conversion() {
    std::optional<Value> named;
    if (skip('(')) {
      const size_t close = rest_.find(')');
      if (close == rest_.npos) throw error_at(at_.place, "a name in a format is not closed");
      if (!values_.is_dict()) throw error_at(at_.place, "a format with names needs an object");
      const Value* found = values_.as_dict().find(rest_.substr(0, close));
      if (!found)
        throw error_at(at_.place,
                       cat("a format asks for '", rest_.substr(0, close), "', which is not there"));
      named = *found;
      rest_.remove_prefix(close + 1);
    }
    FormatSpec spec;
    for (bool more = true; more;) {
      more = false;
      if (skip('-')) spec.align = '<', spec.fill = " ", more = true;
      if (skip('+')) spec.sign = '+', more = true;
      if (skip(' ')) spec.sign = spec.sign == '+' ? '+' : ' ', more = true;
      if (skip('#')) spec.alternate = more = true;
      if (skip('0')) zero_ = more = true;
    }
    if (zero_ && !spec.align) spec.align = '=', spec.fill = "0";
    zero_ = false;
    spec.width = number().value_or(0);
    if (spec.width < 0)
      spec.align = '<', spec.fill = " ", spec.width = spec.width == INT64_MIN ? 0 : -spec.width;
    if (skip('.')) spec.precision = std::max<int64_t>(0, number().value_or(0));
    while (skip('h') || skip('l') || skip('L')) {
    }
    if (rest_.empty()) throw error_at(at_.place, "a format ends inside a conversion");
    const char type = rest_[0];
    rest_.remove_prefix(1);
    if (type == '%') return out_.push_back('%');
    write(named ? *named : next(), type, spec);
  }

  void write(const Value& v, char type, FormatSpec spec) {
    const auto text = [&](const std::string& shown) {
      if (!spec.align || spec.align == '=') spec.align = '>', spec.fill = " ";
      out_.append(formatted_text(shown, spec, at_.place, at_.budget));
    };
    switch (type) {
      case 's':
        return text(joined_text(v, false, at_));
      case 'r':
        return text(joined_text(v, true, at_));
      case 'a':
        return text(ascii_repr(v, at_));
      case 'c':
        if (v.is_string() && count_characters(v.as_string()) == 1) return text(v.as_string());
        spec.type = 'c';
        if (!spec.align || spec.align == '=') spec.align = '>', spec.fill = " ";
        return (void)out_.append(formatted_integer(integer(v, type), spec, at_.place, at_.budget));
      case 'd':
      case 'i':
      case 'u':
        spec.type = 'd';
        return whole_number(integer(v, type), spec);
      case 'o':
      case 'x':
      case 'X':
        spec.type = type;
        return whole_number(integer(v, type), spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!v.is_number() && !v.is_bool())
          throw error_at(at_.place, cat("%", type, " needs a number, got ", v.kind_name()));
        spec.type = type;
        return (void)out_.append(
            formatted_float(v.is_bool() ? v.as_bool() : v.as_double(), spec, at_.place, at_.budget));
      default:
        throw error_at(at_.place, cat("a format has no conversion '", type, "'"));
    }
  }

  // A precision is the least number of digits here.
  void whole_number(int64_t value, FormatSpec spec) {
    const int64_t digits = std::exchange(spec.precision, -1);
    if (digits <= 0) return (void)out_.append(formatted_integer(value, spec, at_.place, at_.budget));
    FormatSpec inner = spec;
    inner.width = digits + (value < 0 || spec.sign != '-');
    inner.align = '=', inner.fill = "0";
    const std::string number = formatted_integer(value, inner, at_.place, at_.budget);
    if (spec.align == '=') spec.align = '>', spec.fill = " ";
    spec.type = 0;
    if (!spec.align) spec.align = '>';
    out_.append(formatted_text(number, spec, at_.place, at_.budget));
  }

  int64_t integer(const Value& v, char type) const {
    if (v.is_int()) return v.as_int();
    if (v.is_bool()) return v.as_bool();
    const bool rounds = type == 'd' || type == 'i' || type == 'u';
    if (rounds && v.is_double() && std::abs(v.as_double()) < 9e18) return int64_t(v.as_double());
    throw error_at(at_.place, cat("%", type, " needs an integer, got ", v.kind_name()));
  }

  std::string_view rest_;
  const Value& values_;
  const FormatPlace& at_;
  std::string out_;
  size_t next_ = 0;
  bool zero_ = false;
};

class Braces {
 public:
  Braces(CallArguments& arguments, const FormatPlace& at) : arguments_(arguments), at_(at) {}

  std::string run(std::string_view format, int depth) {
    if (depth > 2) throw error_at(at_.place, "a format is nested too deep");
    std::string out;
    while (!format.empty()) {
      const size_t brace = std::min(format.find_first_of("{}"), format.size());
      out.append(format.substr(0, brace));
      format.remove_prefix(brace);
      if (format.empty()) break;
      if (format.size() > 1 && format[1] == format[0]) {
        out.push_back(format[0]);
        format.remove_prefix(2);
        continue;
      }
      if (format[0] == '}') throw error_at(at_.place, "a single '}' in a format");
      const size_t end = closing(format);
      out.append(field(format.substr(1, end - 1), depth));
      at_.budget.text(at_.place, out.size());
      format.remove_prefix(end + 1);
    }
    return out;
  }

 private:
  size_t closing(std::string_view format) const {
    int depth = 0;
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] == '{') ++depth;
      if (format[i] == '}' && --depth == 0) return i;
    }
    throw error_at(at_.place, "a '{' in a format is not closed");
  }

  // name[!conversion][:spec]
  std::string field(std::string_view text, int depth) {
    const size_t mark = text.find_first_of("!:");
    const std::string_view name = text.substr(0, mark);
    char conversion = 0;
    std::string_view spec_text;
    if (mark != text.npos && text[mark] == '!') {
      if (mark + 1 >= text.size()) throw error_at(at_.place, "a format ends inside a conversion");
      conversion = text[mark + 1];
      const std::string_view after = text.substr(mark + 2);
      if (!after.empty() && after[0] != ':') throw error_at(at_.place, "expected ':' after a conversion");
      if (!after.empty()) spec_text = after.substr(1);
    } else if (mark != text.npos) {
      spec_text = text.substr(mark + 1);
    }
    const Value v = value_of(name);
    const std::string spec_string = run(spec_text, depth + 1);
    const FormatSpec spec = read_format_spec(spec_string, at_.place);
    if (conversion == 'a') return formatted_text(ascii_repr(v, at_), spec, at_.place, at_.budget);
    if (conversion == 'r' || conversion == 's')
      return formatted_text(joined_text(v, conversion == 'r', at_), spec, at_.place, at_.budget);
    if (conversion) throw error_at(at_.place, cat("a format has no conversion '!", conversion, "'"));
    if (v.is_string() || spec_string.empty())
      return formatted_text(joined_text(v, false, at_), spec, at_.place, at_.budget);
    if (!v.is_number() && !v.is_bool())
      throw error_at(at_.place, cat(v.kind_name(), " has no format '", spec_string, "'"));
    return formatted(v, spec, at_.place, at_.budget);
  }

  // first(.attribute | [index])*
  Value value_of(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value v = argument(name.substr(0, end));
    name.remove_prefix(end);
    while (!name.empty()) {
      const bool attribute = name[0] == '.';
      const size_t stop = attribute ? std::min(name.find_first_of(".[", 1), name.size()) : name.find(']');
      if (stop == name.npos) throw error_at(at_.place, "a '[' in a format is not closed");
      const std::string_view key = name.substr(1, stop - 1);
      if (key.empty()) throw error_at(at_.place, "an empty attribute in a format");
      v = item(v, !attribute && is_number(key) ? Value(to_number(key)) : Value(key), at_.place);
      name.remove_prefix(attribute ? stop : stop + 1);
    }
    return v;
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
  }
  static int64_t to_number(std::string_view text) {
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  const Value& argument(std::string_view name) {
    if (name.empty() || is_number(name)) {
      const int64_t index = name.empty() ? next_++ : to_number(name);
      if (name.empty() ? numbered_ : next_ > 0)
        throw error_at(at_.place, "a format numbers some of its places and not others");
      numbered_ |= !name.empty();
      if (index >= int64_t(arguments_.positional.size()))
        throw error_at(at_.place, cat("a format asks for value ", index, ", and there are ",
                                      arguments_.positional.size()));
      return arguments_.positional[size_t(index)];
    }
    for (const auto& [known, value] : arguments_.named)
      if (known == name) return value;
    throw error_at(at_.place, cat("a format asks for '", name, "', which is not there"));
  }

  CallArguments& arguments_;
  const FormatPlace& at_;
  int64_t next_ = 0;
  bool numbered_ = false;
};

}  // namespace

std::string format_percent(std::string_view format, const Value& values, const FormatPlace& at) {
  return Percent(format, values, at).run();
}

std::string format_braces(std::string_view format, CallArguments& arguments, const FormatPlace& at) {
  std::string out = Braces(arguments, at).run(format, 0);
  arguments.take_all();
  return out;
}

}  // namespace rlx::text::jinja
