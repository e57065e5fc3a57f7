// Filters of numbers and of any value; and how a filter is found by its name.
#include "rlx/text/template/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "rlx/text/json.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/pretty_print.h"
#include "rlx/text/template/text_functions.h"

namespace rlx::text::jinja {

namespace {

Value tojson(const FilterInput& in) {
  JsonStyle style;
  style.indent = int(std::clamp<int64_t>(in.arguments.integer("indent", -1), -1, 100));
  style.ascii = in.arguments.boolean("ensure_ascii", false);
  std::string item_separator, key_separator;
  if (const Value* separators = in.arguments.optional("separators"); separators && !separators->is_none()) {
    if (!separators->is_list() || separators->as_list().size() != 2 ||
        !separators->as_list()[0].is_string() || !separators->as_list()[1].is_string())
      throw error_at(in.place(), "'tojson': separators must be two strings");
    item_separator = separators->as_list()[0].as_string();
    key_separator = separators->as_list()[1].as_string();
    style.item_separator = item_separator;
    style.key_separator = key_separator;
  }
  style.sort_keys = in.arguments.boolean("sort_keys", false);
  if (in.value.is_undefined())
    throw error_at(in.place(), cat("'tojson': '", in.value.undefined_name(), "' is undefined"));
  spend(in.value, in.place(), in.budget());
  std::string out;
  try {
    append_json(out, in.value, style);
  } catch (const Error& e) {
    throw error_at(in.place(), e.message());
  }
  return in.plain_result(std::move(out));
}

Value default_filter(const FilterInput& in) {
  const Value* otherwise = in.arguments.optional("default_value");
  const bool also_false = in.arguments.boolean("boolean", false);
  if (in.value.is_undefined() || (also_false && !truth(in.value))) return otherwise ? *otherwise : Value("");
  return in.value;
}

// Digits in a base of 2 to 36, with the prefix of the base or without.
std::optional<int64_t> read_integer(std::string_view text, int base) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefixed = [&](char low, int wanted) {
    return base == wanted && text.size() > 2 && text[0] == '0' && (text[1] | 32) == low;
  };
  if (prefixed('x', 16) || prefixed('o', 8) || prefixed('b', 2)) text.remove_prefix(2);
  std::string digits(text);
  if (!text.starts_with('_') && !text.ends_with('_')) std::erase(digits, '_');
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  if (negative) digits.insert(digits.begin(), '-');
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Value int_filter(const FilterInput& in) {
  const Value* given = in.arguments.optional("default");
  const Value otherwise = given ? *given : Value(0);
  const int64_t base = in.arguments.integer("base", 10);
  if (base < 2 || base > 36) throw error_at(in.place(), cat("'int': base ", base, " is not in 2..36"));
  const Value& v = in.value;
  if (v.is_int()) return v;
  if (v.is_bool()) return Value(int64_t(v.as_bool()));
  double d = 0;
  if (v.is_double()) {
    d = v.as_double();
  } else if (v.is_string()) {
    const std::string s = strip(v.as_string(), "", true, true);
    if (const auto whole = read_integer(s, int(base))) return Value(*whole);
    const char* begin = s.data() + (s.starts_with('+') ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, s.data() + s.size(), d);
    if (error != std::errc() || end != s.data() + s.size()) return otherwise;
  } else {
    return otherwise;
  }
  return std::abs(d) < 9e18 ? Value(int64_t(d)) : otherwise;
}

Value float_filter(const FilterInput& in) {
  const Value* otherwise = in.arguments.optional("default");
  const Value& v = in.value;
  if (v.is_number()) return Value(v.as_double());
  if (v.is_bool()) return Value(double(v.as_bool()));
  if (v.is_string()) {
    const std::string s = strip(v.as_string(), "", true, true);
    double d = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), d);
    if (error == std::errc() && end == s.data() + s.size()) return Value(d);
  }
  return otherwise ? *otherwise : Value(0.0);
}

Value round_filter(const FilterInput& in) {
  const int64_t precision = std::clamp<int64_t>(in.arguments.integer("precision", 0), -300, 300);
  const std::string method = in.arguments.string("method", "common");
  if (!in.value.is_number() && !in.value.is_bool())
    throw error_at(in.place(), cat("'round' needs a number, got ", in.value.kind_name()));
  const double value = in.value.is_bool() ? in.value.as_bool() : in.value.as_double();
  const double scale = std::pow(10.0, double(precision)), x = value * scale;
  if (method == "ceil") return Value(std::ceil(x) / scale);
  if (method == "floor") return Value(std::floor(x) / scale);
  if (method != "common") throw error_at(in.place(), cat("'round': unknown method '", method, "'"));
  if (in.value.is_int() && precision >= 0) return in.value;
  // Rounded as its decimal digits are, ties to even: 2.675 is a little less and gives 2.67.
  if (precision < 0 || !std::isfinite(value) || std::abs(value) > 1e15) {
    const double rounded = std::nearbyint(x) / scale;
    return in.value.is_int() ? Value(int64_t(rounded)) : Value(rounded);
  }
  char buffer[400];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed,
                                          int(std::min<int64_t>(precision, 60)));
  double rounded = value;
  if (error == std::errc()) std::from_chars(buffer, end, rounded);
  return Value(rounded);
}

Value abs_filter(const FilterInput& in) {
  if (in.value.is_int()) return in.value.as_int() < 0 ? negated(in.value, in.place()) : in.value;
  if (in.value.is_double()) return Value(std::abs(in.value.as_double()));
  throw error_at(in.place(), cat("'abs' needs a number, got ", in.value.kind_name()));
}

Value filesizeformat(const FilterInput& in) {
  const bool binary = in.arguments.boolean("binary", false);
  CallArguments none("float", in.place());
  const double bytes = float_filter({in.value, none, in.runtime}).as_double();
  constexpr std::string_view kDecimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  constexpr std::string_view kBinary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value("1 Byte");
  if (bytes < base) return Value(cat(int64_t(std::max(bytes, -9e18)), " Bytes"));
  double unit = base;
  size_t i = 0;
  while (i + 1 < std::size(kDecimal) && bytes >= unit * base) unit *= base, ++i;
  char number[64];
  const auto end =
      std::to_chars(number, number + sizeof number, bytes / unit, std::chars_format::fixed, 1).ptr;
  return Value(cat(std::string_view(number, size_t(end - number)), " ", (binary ? kBinary : kDecimal)[i]));
}

// An attribute and nothing else: the items of an object do not count.
Value attr_filter(const FilterInput& in) {
  const std::string name = in.arguments.required_string("name");
  if (in.value.is_undefined())
    throw error_at(in.place(), cat("'", in.value.undefined_name(), "' is undefined"));
  if (in.value.is_object()) return in.value.as_object()->get(name);
  return find_method(in.value, name, in.runtime);
}

}  // namespace

const FilterTable& value_filters() {
  static const FilterTable table = {
      {"abs", abs_filter},
      {"attr", attr_filter},
      {"d", default_filter},
      {"default", default_filter},
      {"filesizeformat", filesizeformat},
      {"float", float_filter},
      {"int", int_filter},
      {"pprint",
       [](const FilterInput& in) {
         return in.plain_result(pretty_printed(in.value, in.place(), in.budget()));
       }},
      {"round", round_filter},
      {"tojson", tojson},
  };
  return table;
}

bool is_filter(std::string_view name) {
  return value_filters().count(name) || text_filters().count(name) || list_filters().count(name);
}

Value apply_filter(std::string_view name, const Value& input, CallArguments& arguments, Runtime& runtime) {
  std::vector<std::string_view> names;
  for (const FilterTable* table : {&value_filters(), &text_filters(), &list_filters()}) {
    const auto found = table->find(name);
    if (found == table->end()) {
      for (const auto& [known, f] : *table) names.push_back(known);
      continue;
    }
    runtime.budget.step(arguments.place(), 1 + (input.is_string() ? input.as_string().size() / 64 : 0));
    Value result = found->second({input, arguments, runtime});
    arguments.finish();
    return result;
  }
  std::sort(names.begin(), names.end());
  throw error_at(arguments.place(), cat("no filter named '", name, "'; known: ", join(names)));
}

}  // namespace rlx::text::jinja
