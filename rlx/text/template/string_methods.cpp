// Methods of strings, as Python's str has them.
#include <algorithm>

#include "rlx/text/template/digit_kinds.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/methods.h"
#include "rlx/text/template/string_format.h"
#include "rlx/text/template/text_functions.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

using In = MethodInput;

Value string_list(const In& in, std::vector<std::string> parts, bool tuple = false) {
  in.budget.items(in.place(), parts.size());
  List out;
  for (std::string& p : parts)
    out.push_back(in.self.is_markup() ? Value::markup(std::move(p)) : Value(std::move(p)));
  return tuple ? Value::tuple(std::move(out)) : Value(std::move(out));
}

/// What goes into markup is escaped.
std::string joining(const In& in, const Value& v) {
  return in.self.is_markup() && !v.is_markup() ? escape_markup(v.as_string()) : v.as_string();
}

/// The part of the text between the arguments `start` and `end`, which count characters.
struct Window {
  std::string_view text;
  size_t begin = 0;  // bytes before it
  bool valid = true;
};
Window window(const In& in) {
  const std::string& s = in.text();
  const Value *start = in.arguments.optional("start"), *end = in.arguments.optional("end");
  if (!start && !end) return {s};
  const auto n = int64_t(count_characters(s));
  const auto bound = [&](const Value* v, int64_t otherwise) {
    if (!v || v->is_none()) return otherwise;
    if (!v->is_int()) throw error_at(in.place(), cat("a place in a string is ", v->kind_name()));
    return v->as_int() < 0 ? std::max<int64_t>(0, v->as_int() + n) : v->as_int();
  };
  const int64_t from = bound(start, 0), to = std::min(bound(end, n), n);
  if (from > n || from > to) return {"", 0, false};
  const size_t begin = prefix_bytes(s, from);
  return {std::string_view(s).substr(begin, prefix_bytes(std::string_view(s).substr(begin), to - from)),
          begin};
}

/// startswith and endswith: one string or a tuple of them.
Value has_affix(const In& in, bool start) {
  const Value affix = in.arguments.required(start ? "prefix" : "suffix");
  const Window w = window(in);
  const auto one = [&](const Value& v) {
    if (!v.is_string()) throw error_at(in.place(), cat("expected a string, got ", v.kind_name()));
    return w.valid && (start ? w.text.starts_with(v.as_string()) : w.text.ends_with(v.as_string()));
  };
  if (!affix.is_list()) return Value(one(affix));
  return Value(std::any_of(affix.as_list().begin(), affix.as_list().end(), one));
}

Value rsplit(const In& in) {
  const std::string separator = in.arguments.string("sep", "");
  const int64_t limit = in.arguments.integer("maxsplit", -1);
  const std::string_view s = in.text();
  if (limit < 0) return string_list(in, split(s, separator, -1));
  std::vector<std::string> parts;  // from the right
  std::string_view left = s;
  if (separator.empty()) left = left.substr(0, strip(left, "", false, true).size());
  while (int64_t(parts.size()) < limit && !left.empty()) {
    if (separator.empty()) {
      const std::vector<std::string> words = split(left, "", -1);
      if (words.size() < 2) break;
      parts.push_back(words.back());
      left = left.substr(0, left.size() - words.back().size());
      left = left.substr(0, strip(left, "", false, true).size());
    } else {
      const size_t at = left.rfind(separator);
      if (at == left.npos) break;
      parts.emplace_back(left.substr(at + separator.size()));
      left = left.substr(0, at);
    }
    in.budget.step(in.place(), 1 + left.size() / 64);
  }
  if (!separator.empty() || !left.empty())
    parts.push_back(separator.empty() ? strip(left, "", true, false) : std::string(left));
  std::reverse(parts.begin(), parts.end());
  return string_list(in, std::move(parts));
}

Value split_method(const In& in) {
  const std::string separator = in.arguments.string("sep", "");
  return string_list(in, split(in.text(), separator, in.arguments.integer("maxsplit", -1)));
}

/// find, rfind, index and rindex: the last two must find something.
Value find_text(const In& in, bool last, bool must) {
  const std::string what = in.arguments.required_string("sub");
  const Window w = window(in);
  const size_t at = !w.valid ? std::string::npos : last ? w.text.rfind(what) : w.text.find(what);
  if (at != std::string::npos)
    return Value(int64_t(count_characters(std::string_view(in.text()).substr(0, w.begin + at))));
  if (must)
    throw error_at(in.place(), cat("'", in.arguments.callee(), "': '", what, "' is not in the string"));
  return Value(-1);
}

Value count_text(const In& in) {
  const std::string what = in.arguments.required_string("sub");
  const Window w = window(in);
  if (!w.valid) return Value(0);
  if (what.empty()) return Value(int64_t(count_characters(w.text)) + 1);
  int64_t n = 0;
  for (size_t at = w.text.find(what); at != w.text.npos; at = w.text.find(what, at + what.size())) ++n;
  return Value(n);
}

Value join_method(const In& in) {
  std::string out;
  bool first = true;
  for (const Value& v : elements(in.arguments.required("iterable"), in.place(), in.budget)) {
    if (!v.is_string()) throw error_at(in.place(), cat("'join' needs strings, got ", v.kind_name()));
    if (!first) out.append(in.text());
    first = false;
    out.append(joining(in, v));
    if (out.size() > Budget::kMaxText) in.budget.text(in.place(), out.size());
  }
  return in.result(std::move(out));
}

Value replace_method(const In& in) {
  const std::string from = in.arguments.required_string("old");
  const Value to_value = in.arguments.required("new");
  if (!to_value.is_string())
    throw error_at(in.place(), cat("'replace' needs strings, got ", to_value.kind_name()));
  const std::string to = joining(in, to_value);
  const int64_t limit = in.arguments.integer("count", -1);
  const size_t places = in.text().size() / std::max<size_t>(1, from.size()) + 1;
  in.budget.text(in.place(), in.text().size() + places * to.size());
  return in.result(replace(in.text(), from, to, limit));
}

/// partition and rpartition: before, separator, after.
Value partition(const In& in, bool last) {
  const std::string separator = in.arguments.required_string("sep");
  if (separator.empty()) throw error_at(in.place(), "a string is cut at an empty separator");
  const std::string& s = in.text();
  const size_t at = last ? s.rfind(separator) : s.find(separator);
  if (at == s.npos) return last ? string_list(in, {"", "", s}, true) : string_list(in, {s, "", ""}, true);
  return string_list(in, {s.substr(0, at), separator, s.substr(at + separator.size())}, true);
}

/// center, ljust and rjust.
Value justify(const In& in, char side) {
  const Value& width_value = in.arguments.required("width");
  if (!width_value.is_int()) throw error_at(in.place(), cat("a width is ", width_value.kind_name()));
  const int64_t width = width_value.as_int();
  const std::string fill = in.arguments.string("fillchar", " ");
  if (count_characters(fill) != 1) throw error_at(in.place(), cat("'", fill, "' is not one character"));
  in.budget.text(in.place(), width > 0 ? size_t(width) * fill.size() : 0);
  if (side == '^') return in.result(centered(in.text(), width, fill));
  std::string filling;
  for (auto n = int64_t(count_characters(in.text())); n < width; ++n) filling.append(fill);
  return in.result(side == '<' ? in.text() + filling : filling + in.text());
}

Value zfill(const In& in) {
  const Value& width = in.arguments.required("width");
  if (!width.is_int()) throw error_at(in.place(), cat("a width is ", width.kind_name()));
  const std::string& s = in.text();
  const int64_t missing = width.as_int() - int64_t(count_characters(s));
  if (missing <= 0) return in.self;
  in.budget.text(in.place(), size_t(missing));
  const size_t sign = s.starts_with('+') || s.starts_with('-') ? 1 : 0;
  return in.result(s.substr(0, sign) + std::string(size_t(missing), '0') + s.substr(sign));
}

Value expandtabs(const In& in) {
  const int64_t size = in.arguments.integer("tabsize", 8);
  const auto tabs = size_t(std::count(in.text().begin(), in.text().end(), '\t'));
  in.budget.text(in.place(), in.text().size() + tabs * size_t(std::clamp<int64_t>(size, 0, INT32_MAX)));
  return in.result(without_tabs(in.text(), size));
}

/// There is a character, and `holds` for each.
template <class Holds>
Value all_characters(const In& in, Holds holds) {
  const std::string& s = in.text();
  for (size_t i = 0; i < s.size();) {
    const Decoded c = decode_utf8(s, i);
    if (!holds(c.code)) return Value(false);
    i += c.length;
  }
  return Value(!s.empty());
}

Value all_of_class(const In& in, uint8_t bits) {
  const CharClasses classes;
  return all_characters(in, [&](char32_t c) { return (classes[c] & bits) != 0; });
}

template <size_t N>
bool in_ranges(char32_t code, const CodeRange (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const CodeRange& r) { return code >= r.first && code <= r.last; });
}

Value is_digit(const In& in) {
  return all_characters(in, [](char32_t c) { return is_decimal_digit(c) || in_ranges(c, kOtherDigits); });
}

Value is_numeric(const In& in) {
  const CharClasses classes;
  return all_characters(
      in, [&](char32_t c) { return (classes[c] & kNumber) || in_ranges(c, kNumberIdeographs); });
}

Value is_identifier(const In& in) {
  const CharClasses classes;
  bool first = true;
  return all_characters(in, [&](char32_t c) {
    const bool letter = c == '_' || (classes[c] & kLetter);
    return std::exchange(first, false) ? letter : letter || (classes[c] & (kMark | kWord));
  });
}

Value strip_method(const In& in, bool left, bool right) {
  return in.result(strip(in.text(), in.arguments.string("chars", ""), left, right));
}

Value without_affix(const In& in, bool prefix) {
  const std::string affix = in.arguments.required_string(prefix ? "prefix" : "suffix");
  const std::string& s = in.text();
  if (prefix) return s.starts_with(affix) ? in.result(s.substr(affix.size())) : in.self;
  return s.ends_with(affix) ? in.result(s.substr(0, s.size() - affix.size())) : in.self;
}

Value format_method(const In& in) {
  return in.result(format_braces(in.text(), in.arguments, {in.place(), in.budget, in.self.is_markup()}));
}

Value format_map(const In& in) {
  const Value& map = in.arguments.required("mapping");
  if (!map.is_dict()) throw error_at(in.place(), cat("'format_map' needs an object, got ", map.kind_name()));
  CallArguments values("format_map", in.place());
  for (const auto& [key, value] : map.as_dict())
    if (key.is_string()) values.named.emplace_back(key.as_string(), value);
  return in.result(format_braces(in.text(), values, {in.place(), in.budget, in.self.is_markup()}));
}

}  // namespace

const MethodTable& string_methods() {
  static const MethodTable table = {
      {"capitalize", [](const In& in) { return in.result(capitalize(in.text())); }},
      {"casefold", [](const In& in) { return in.result(case_folded(in.text())); }},
      {"center", [](const In& in) { return justify(in, '^'); }},
      {"count", count_text},
      {"endswith", [](const In& in) { return has_affix(in, false); }},
      {"expandtabs", expandtabs},
      {"find", [](const In& in) { return find_text(in, false, false); }},
      {"format", format_method},
      {"format_map", format_map},
      {"index", [](const In& in) { return find_text(in, false, true); }},
      {"isalnum", [](const In& in) { return all_of_class(in, kLetter | kNumber); }},
      {"isalpha", [](const In& in) { return all_of_class(in, kLetter); }},
      {"isascii",
       [](const In& in) {
         return Value(in.text().empty() || all_characters(in, [](char32_t c) { return c < 128; }).as_bool());
       }},
      {"isdecimal", [](const In& in) { return all_characters(in, is_decimal_digit); }},
      {"isdigit", is_digit},
      {"isidentifier", is_identifier},
      {"islower", [](const In& in) { return Value(has_case(in.text(), LetterCase::lower)); }},
      {"isnumeric", is_numeric},
      {"isspace",
       [](const In& in) {
         return all_characters(in, [](char32_t c) { return is_space(c) || (c >= 0x1C && c <= 0x1F); });
       }},
      {"istitle", [](const In& in) { return Value(has_case(in.text(), LetterCase::title)); }},
      {"isupper", [](const In& in) { return Value(has_case(in.text(), LetterCase::upper)); }},
      {"join", join_method},
      {"ljust", [](const In& in) { return justify(in, '<'); }},
      {"lower", [](const In& in) { return in.result(lower(in.text())); }},
      {"lstrip", [](const In& in) { return strip_method(in, true, false); }},
      {"partition", [](const In& in) { return partition(in, false); }},
      {"removeprefix", [](const In& in) { return without_affix(in, true); }},
      {"removesuffix", [](const In& in) { return without_affix(in, false); }},
      {"replace", replace_method},
      {"rfind", [](const In& in) { return find_text(in, true, false); }},
      {"rindex", [](const In& in) { return find_text(in, true, true); }},
      {"rjust", [](const In& in) { return justify(in, '>'); }},
      {"rpartition", [](const In& in) { return partition(in, true); }},
      {"rsplit", rsplit},
      {"rstrip", [](const In& in) { return strip_method(in, false, true); }},
      {"split", split_method},
      {"splitlines",
       [](const In& in) {
         return string_list(in, split_lines(in.text(), in.arguments.boolean("keepends", false)));
       }},
      {"startswith", [](const In& in) { return has_affix(in, true); }},
      {"strip", [](const In& in) { return strip_method(in, true, true); }},
      {"swapcase", [](const In& in) { return in.result(swap_case(in.text())); }},
      {"title", [](const In& in) { return in.result(title(in.text())); }},
      {"upper", [](const In& in) { return in.result(upper(in.text())); }},
      {"zfill", zfill},
  };
  return table;
}

}  // namespace rlx::text::jinja
