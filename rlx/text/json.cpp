#include "rlx/text/json.h"
#include "rlx/text/python_float.h"

#include <algorithm>
#include <cmath>

#include "rlx/base/error.h"
#include "rlx/text/json_dom.h"
#include "rlx/text/unicode.h"

namespace rlx::text {

simdjson::dom::element parse_dom(simdjson::dom::parser& parser, std::string_view text,
                                 std::string_view where) {
  simdjson::error_code failed = parser.allocate(std::max<size_t>(text.size(), 64), kMaxJsonDepth);
  if (failed) throw environment_error(where, ": cannot allocate a JSON parser for ", text.size(), " bytes");
  simdjson::dom::element root;
  failed = parser.parse(text.data(), text.size()).get(root);
  if (failed) throw invalid(where, ": not valid JSON: ", simdjson::error_message(failed));
  return root;
}

Value to_value(const simdjson::dom::element& element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::NULL_VALUE:
      return Value();
    case element_type::BOOL:
      return Value(bool(element));
    case element_type::INT64:
      return Value(int64_t(element));
    case element_type::UINT64:
      return Value(double(uint64_t(element)));
    case element_type::DOUBLE:
      return Value(double(element));
    case element_type::STRING:
      return Value(std::string_view(element));
    case element_type::ARRAY: {
      List list;
      for (const auto item : simdjson::dom::array(element)) list.push_back(to_value(item));
      return Value(std::move(list));
    }
    case element_type::OBJECT: {
      Dict dict;
      for (const auto field : simdjson::dom::object(element)) dict.set(field.key, to_value(field.value));
      return Value(std::move(dict));
    }
  }
  return Value();
}

Value parse_json(std::string_view text, std::string_view where) {
  simdjson::dom::parser parser;
  return to_value(parse_dom(parser, text, where));
}

void append_json_string(std::string& out, std::string_view text, bool ascii) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto escape = [&](unsigned unit) {
    const char code[] = {'\\',           'u', kHex[unit >> 12], kHex[unit >> 8 & 15], kHex[unit >> 4 & 15],
                         kHex[unit & 15]};
    out.append(code, 6);
  };
  out.push_back('"');
  for (size_t i = 0; i < text.size();) {
    const Decoded c = decode_utf8(text, i);
    switch (c.code) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      case '\b':
        out.append("\\b");
        break;
      case '\f':
        out.append("\\f");
        break;
      case kBadByte:
        ascii ? escape(0xFFFD) : (void)out.append("\xEF\xBF\xBD");
        break;
      default:
        if (c.code < 0x20 || (ascii && c.code >= 0x7F && c.code < 0x10000)) {
          c.code == 0x7F ? out.push_back(char(0x7F)) : escape(unsigned(c.code));
        } else if (ascii && c.code >= 0x10000) {
          escape(0xD800 + unsigned((c.code - 0x10000) >> 10));
          escape(0xDC00 + unsigned((c.code - 0x10000) & 0x3FF));
        } else {
          out.append(text.substr(i, c.length));
        }
    }
    i += c.length;
  }
  out.push_back('"');
}

namespace {

void append_number(std::string& out, double d) {
  if (std::isnan(d)) return (void)out.append("NaN");
  if (std::isinf(d)) return (void)out.append(d < 0 ? "-Infinity" : "Infinity");
  append_python_float(out, d);
}

// JSON has no keys but strings; others are written as one.
std::string key_text(const Value& key) {
  std::string out;
  if (key.is_string()) return key.as_string();
  if (key.is_none()) return "null";
  if (key.is_bool()) return key.as_bool() ? "true" : "false";
  if (key.is_list()) throw invalid("json: a key of kind ", key.kind_name(), " has no JSON form");
  key.is_int() ? append_text(out, key.as_int()) : append_number(out, key.as_double());
  return out;
}

void write(std::string& out, const Value& value, const JsonStyle& style, size_t depth) {
  const auto new_line = [&](size_t level) {
    if (style.indent < 0) return;
    out.push_back('\n');
    out.append(level * size_t(style.indent), ' ');
  };
  // With an indent Python drops the space after the item separator: the line break takes its place.
  const std::string_view separator =
      style.indent >= 0 && style.item_separator == ", " ? std::string_view(",") : style.item_separator;
  if (value.is_none()) {
    out.append("null");
  } else if (value.is_bool()) {
    out.append(value.as_bool() ? "true" : "false");
  } else if (value.is_int()) {
    append_text(out, value.as_int());
  } else if (value.is_double()) {
    append_number(out, value.as_double());
  } else if (value.is_string()) {
    append_json_string(out, value.as_string(), style.ascii);
  } else if (value.is_list()) {
    const List& list = value.as_list();
    out.push_back('[');
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out.append(separator);
      new_line(depth + 1);
      write(out, list[i], style, depth + 1);
    }
    if (!list.empty()) new_line(depth);
    out.push_back(']');
  } else if (value.is_dict()) {
    const Dict& dict = value.as_dict();
    std::vector<std::pair<std::string, const Value*>> items;
    for (const auto& [key, item] : dict) items.emplace_back(key_text(key), &item);
    if (style.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    out.push_back('{');
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out.append(separator);
      new_line(depth + 1);
      append_json_string(out, items[i].first, style.ascii);
      out.append(style.key_separator);
      write(out, *items[i].second, style, depth + 1);
    }
    if (!items.empty()) new_line(depth);
    out.push_back('}');
  } else {
    throw invalid("json: a value of kind ", value.kind_name(), " has no JSON form");
  }
}

}  // namespace

void append_json(std::string& out, const Value& value, const JsonStyle& style) {
  write(out, value, style, 0);
}

}  // namespace rlx::text
