// Filters, one function each and a table of their names; `a | name(b)` calls name with input a.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "rlx/text/json.h"
#include "rlx/text/template/builtins.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/text_functions.h"

namespace rlx::text::jinja {

namespace {

struct Input {
  const Value& value;
  CallArguments& arguments;
  Runtime& runtime;

  Place place() const { return arguments.place(); }
  Budget& budget() const { return runtime.budget; }
  std::string text() const { return to_text(value, place(), budget()); }
  List list() const { return elements(value, place(), budget()); }
};

Value text_result(const Input& in, std::string text) {
  in.budget().text(in.place(), text.size());
  return Value(std::move(text));
}

Value tojson(const Input& in) {
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
  return text_result(in, std::move(out));
}

Value default_filter(const Input& in) {
  const Value* otherwise = in.arguments.optional("default_value");
  const bool also_false = in.arguments.boolean("boolean", false);
  if (in.value.is_undefined() || (also_false && !truth(in.value))) return otherwise ? *otherwise : Value("");
  return in.value;
}

/// The attribute `path` of a value: names and indices joined by dots.
Value attribute_of(const Value& value, std::string_view path, const Input& in) {
  Value v = value;
  for (const std::string& part : split(path, ".", -1)) {
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = error == std::errc() && end == part.data() + part.size();
    v = item(v, is_index ? Value(index) : Value(part), in.place());
  }
  return v;
}

Value join_filter(const Input& in) {
  const std::string separator = in.arguments.string("d", "");
  const std::string attribute = in.arguments.string("attribute", "");
  std::string out;
  bool first = true;
  for (const Value& v : in.list()) {
    if (!first) out.append(separator);
    first = false;
    out.append(to_text(attribute.empty() ? v : attribute_of(v, attribute, in), in.place(), in.budget()));
    if (out.size() > Budget::kMaxText) in.budget().text(in.place(), out.size());
  }
  return text_result(in, std::move(out));
}

/// The arguments that `map`, `select` and their kin hand on: all after the first, and those by name.
CallArguments rest_of(const Input& in, std::string_view callee, size_t skip) {
  CallArguments rest(callee, in.place());
  for (size_t i = skip; i < in.arguments.positional.size(); ++i)
    rest.positional.push_back(in.arguments.positional[i]);
  rest.named = in.arguments.named;
  return rest;
}

/// Marks all arguments as read: they have been handed on.
void take_all(const Input& in) {
  while (in.arguments.optional("") != nullptr) {
  }
  for (const auto& [name, value] : in.arguments.named) in.arguments.optional(name);
}

Value map_filter(const Input& in) {
  List out;
  const List list = in.list();
  if (in.arguments.positional.empty()) {
    const std::string attribute = in.arguments.required_string("attribute");
    const Value* otherwise = in.arguments.optional("default");
    for (const Value& v : list) {
      Value found = attribute_of(v, attribute, in);
      out.push_back(found.is_undefined() && otherwise ? *otherwise : std::move(found));
    }
    return Value(std::move(out));
  }
  const std::string name = in.arguments.required_string("filter");
  for (const Value& v : list) {
    CallArguments rest = rest_of(in, name, 1);
    out.push_back(apply_filter(name, v, rest, in.runtime));
  }
  take_all(in);
  return Value(std::move(out));
}

/// select, reject, selectattr and rejectattr.
Value pick(const Input& in, bool by_attribute, bool keep) {
  const std::string attribute = by_attribute ? in.arguments.required_string("attribute") : std::string();
  const size_t skip = by_attribute ? 1 : 0;
  std::string test;
  if (in.arguments.positional.size() > skip) test = in.arguments.required_string("test");
  List out;
  for (const Value& v : in.list()) {
    const Value subject = by_attribute ? attribute_of(v, attribute, in) : v;
    bool yes = false;
    if (test.empty()) {
      yes = truth(subject);
    } else {
      CallArguments rest = rest_of(in, test, skip + 1);
      yes = apply_test(test, subject, rest, in.runtime);
    }
    if (yes == keep) out.push_back(v);
  }
  take_all(in);
  return Value(std::move(out));
}

Value int_filter(const Input& in) {
  const int64_t otherwise = in.arguments.integer("default", 0);
  const Value& v = in.value;
  if (v.is_int()) return v;
  if (v.is_bool()) return Value(int64_t(v.as_bool()));
  double d = 0;
  if (v.is_double()) {
    d = v.as_double();
  } else if (v.is_string()) {
    const std::string s = strip(v.as_string(), "", true, true);
    int64_t whole = 0;
    const char* begin = s.data() + (s.starts_with('+') ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, s.data() + s.size(), whole);
    if (error == std::errc() && end == s.data() + s.size()) return Value(whole);
    const auto [fend, ferror] = std::from_chars(begin, s.data() + s.size(), d);
    if (ferror != std::errc() || fend != s.data() + s.size()) return Value(otherwise);
  } else {
    return Value(otherwise);
  }
  return std::abs(d) < 9e18 ? Value(int64_t(d)) : Value(otherwise);
}

Value float_filter(const Input& in) {
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

Value round_filter(const Input& in) {
  const int64_t precision = std::clamp<int64_t>(in.arguments.integer("precision", 0), -300, 300);
  const std::string method = in.arguments.string("method", "common");
  if (!in.value.is_number())
    throw error_at(in.place(), cat("'round' needs a number, got ", in.value.kind_name()));
  const double scale = std::pow(10.0, double(precision)), x = in.value.as_double() * scale;
  if (method == "ceil") return Value(std::ceil(x) / scale);
  if (method == "floor") return Value(std::floor(x) / scale);
  if (method != "common") throw error_at(in.place(), cat("'round': unknown method '", method, "'"));
  return Value(std::nearbyint(x) / scale);
}

Value sort_filter(const Input& in) {
  const bool reverse = in.arguments.boolean("reverse", false);
  const bool case_sensitive = in.arguments.boolean("case_sensitive", false);
  const std::string attribute = in.arguments.string("attribute", "");
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& v : in.list()) {
    Value key = attribute.empty() ? v : attribute_of(v, attribute, in);
    if (!case_sensitive && key.is_string()) key = Value(lower(key.as_string()));
    keyed.emplace_back(std::move(key), v);
  }
  // Comparing may throw, which std::stable_sort survives; equal elements keep their order either way round.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    const int o = order(a.first, b.first, in.place(), in.budget());
    return reverse ? o > 0 : o < 0;
  });
  List out;
  for (auto& [key, v] : keyed) out.push_back(std::move(v));
  return Value(std::move(out));
}

Value unique_filter(const Input& in) {
  const bool case_sensitive = in.arguments.boolean("case_sensitive", false);
  List out, seen;
  for (const Value& v : in.list()) {
    Value key = !case_sensitive && v.is_string() ? Value(lower(v.as_string())) : v;
    bool known = false;
    for (const Value& s : seen) known = known || equal(s, key, in.place(), in.budget());
    if (known) continue;
    seen.push_back(std::move(key));
    out.push_back(v);
  }
  return Value(std::move(out));
}

Value items_of(const Value& v, Place place) {
  List out;
  if (v.is_undefined()) return Value(std::move(out));
  if (!v.is_dict()) throw error_at(place, cat("'items' needs an object, got ", v.kind_name()));
  for (const auto& [key, value] : v.as_dict()) out.push_back(Value::tuple({Value(key), value}));
  return Value(std::move(out));
}

Value dictsort(const Input& in) {
  const bool case_sensitive = in.arguments.boolean("case_sensitive", false);
  const std::string by = in.arguments.string("by", "key");
  const bool reverse = in.arguments.boolean("reverse", false);
  if (by != "key" && by != "value") throw error_at(in.place(), cat("'dictsort': cannot sort by '", by, "'"));
  List items = items_of(in.value, in.place()).as_list();
  const auto key = [&](const Value& pair) {
    Value k = pair.as_list()[by == "key" ? 0 : 1];
    return !case_sensitive && k.is_string() ? Value(lower(k.as_string())) : k;
  };
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    const int o = order(key(a), key(b), in.place(), in.budget());
    return reverse ? o > 0 : o < 0;
  });
  return Value(std::move(items));
}

/// min and max.
Value extreme(const Input& in, int wanted) {
  const std::string attribute = in.arguments.string("attribute", "");
  Value best = Value::undefined("empty sequence"), best_key;
  for (const Value& v : in.list()) {
    Value key = attribute.empty() ? v : attribute_of(v, attribute, in);
    if (best.is_undefined() || order(key, best_key, in.place(), in.budget()) == wanted)
      best = v, best_key = key;
  }
  return best;
}

Value sum_filter(const Input& in) {
  const std::string attribute = in.arguments.string("attribute", "");
  const Value* start = in.arguments.optional("start");
  Value total = start ? *start : Value(0);
  for (const Value& v : in.list())
    total = arithmetic("+", total, attribute.empty() ? v : attribute_of(v, attribute, in), in.place(),
                       in.budget());
  return total;
}

Value escape_filter(const Input& in) {
  std::string out;
  for (const char c : in.text()) {
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&#34;");
        break;
      case '\'':
        out.append("&#39;");
        break;
      default:
        out.push_back(c);
    }
  }
  return text_result(in, std::move(out));
}

Value indent_filter(const Input& in) {
  const Value* width = in.arguments.optional("width");
  const bool first = in.arguments.boolean("first", false), blank = in.arguments.boolean("blank", false);
  std::string margin(4, ' ');
  if (width && width->is_string()) margin = width->as_string();
  if (width && width->is_int()) margin.assign(size_t(std::clamp<int64_t>(width->as_int(), 0, 1000)), ' ');
  const std::string text = in.text();
  const auto lines = size_t(std::count(text.begin(), text.end(), '\n')) + 1;
  in.budget().text(in.place(), text.size() + lines * margin.size());
  return Value(indent(text, margin, first, blank));
}

Value replace_filter(const Input& in) {
  const std::string from = in.arguments.required_string("old"), to = in.arguments.required_string("new");
  const int64_t limit = in.arguments.integer("count", -1);
  const std::string text = in.text();
  in.budget().text(in.place(),
                   text.size() + (text.size() / std::max<size_t>(1, from.size()) + 1) * to.size());
  return Value(replace(text, from, to, limit));
}

Value reverse_filter(const Input& in) {
  List list = in.list();
  std::reverse(list.begin(), list.end());
  if (!in.value.is_string()) return Value(std::move(list));
  std::string out;
  for (const Value& v : list) out.append(v.as_string());
  return Value(std::move(out));
}

Value abs_filter(const Input& in) {
  if (in.value.is_int()) return in.value.as_int() < 0 ? negated(in.value, in.place()) : in.value;
  if (in.value.is_double()) return Value(std::abs(in.value.as_double()));
  throw error_at(in.place(), cat("'abs' needs a number, got ", in.value.kind_name()));
}

Value end_of(const Input& in, bool last) {
  const List list = in.list();
  if (list.empty())
    return Value::undefined(last ? "last of an empty sequence" : "first of an empty sequence");
  return last ? list.back() : list.front();
}

using Filter = Value (*)(const Input&);

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> table = {
      {"abs", abs_filter},
      {"capitalize", [](const Input& in) { return Value(capitalize(in.text())); }},
      {"count", [](const Input& in) { return Value(length(in.value, in.place())); }},
      {"d", default_filter},
      {"default", default_filter},
      {"dictsort", dictsort},
      {"e", escape_filter},
      {"escape", escape_filter},
      {"first", [](const Input& in) { return end_of(in, false); }},
      {"float", float_filter},
      {"indent", indent_filter},
      {"int", int_filter},
      {"items", [](const Input& in) { return items_of(in.value, in.place()); }},
      {"join", join_filter},
      {"last", [](const Input& in) { return end_of(in, true); }},
      {"length", [](const Input& in) { return Value(length(in.value, in.place())); }},
      {"list", [](const Input& in) { return Value(in.list()); }},
      {"lower", [](const Input& in) { return Value(lower(in.text())); }},
      {"map", map_filter},
      {"max", [](const Input& in) { return extreme(in, 1); }},
      {"min", [](const Input& in) { return extreme(in, -1); }},
      {"reject", [](const Input& in) { return pick(in, false, false); }},
      {"rejectattr", [](const Input& in) { return pick(in, true, false); }},
      {"replace", replace_filter},
      {"reverse", reverse_filter},
      {"round", round_filter},
      {"safe", [](const Input& in) { return Value(in.text()); }},
      {"select", [](const Input& in) { return pick(in, false, true); }},
      {"selectattr", [](const Input& in) { return pick(in, true, true); }},
      {"sort", sort_filter},
      {"string", [](const Input& in) { return Value(in.text()); }},
      {"sum", sum_filter},
      {"title", [](const Input& in) { return Value(title(in.text())); }},
      {"tojson", tojson},
      {"trim",
       [](const Input& in) { return Value(strip(in.text(), in.arguments.string("chars", ""), true, true)); }},
      {"unique", unique_filter},
      {"upper", [](const Input& in) { return Value(upper(in.text())); }},
  };
  return table;
}

}  // namespace

Value apply_filter(std::string_view name, const Value& input, CallArguments& arguments, Runtime& runtime) {
  const auto found = filters().find(name);
  if (found == filters().end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, f] : filters()) names.push_back(known);
    throw error_at(arguments.place(), cat("no filter named '", name, "'; known: ", join(names)));
  }
  runtime.budget.step(arguments.place(), 1 + (input.is_string() ? input.as_string().size() / 64 : 0));
  Value result = found->second({input, arguments, runtime});
  arguments.finish();
  return result;
}

}  // namespace rlx::text::jinja
