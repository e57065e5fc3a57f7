#include "rlx/text/json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rlx/base/error.h"
#include "rlx/base/json_write.h"
#include "rlx/text/python_float.h"

namespace rlx::text {

Value to_value(JsonView v) {
  switch (v.kind()) {
    case JsonKind::null:
      return Value();
    case JsonKind::boolean:
      return Value(v.boolean());
    case JsonKind::integer:
      return v.real() < 0x1p63 || v.unsigned_integer() <= uint64_t(INT64_MAX) ? Value(v.integer())
                                                                              : Value(v.real());
    case JsonKind::real:
      return Value(v.real());
    case JsonKind::string:
      return Value(v.string());
    case JsonKind::array: {
      List list;
      for (const JsonView item : v.items()) list.push_back(to_value(item));
      return Value(std::move(list));
    }
    case JsonKind::object: {
      Dict dict;
      for (const auto [key, value] : v.members()) dict.set(key, to_value(value));
      return Value(std::move(dict));
    }
  }
  return Value();
}

Value parse_json(std::string_view text, std::string_view where) {
  return to_value(Json::parse_in_place(text, where));
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
    append_json_string(out, value.as_string(), {.ascii = style.ascii, .replace_invalid = true});
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
      append_json_string(out, items[i].first, {.ascii = style.ascii, .replace_invalid = true});
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
