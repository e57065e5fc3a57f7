// Methods of strings and dicts: `a.name(b)`. Those that would change a value are left out: templates work on
// values they share with their caller.
#include <algorithm>
#include <map>

#include "rlx/text/template/builtins.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/text_functions.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

struct Input {
  const Value& self;
  CallArguments& arguments;
  Budget& budget;

  const std::string& text() const { return self.as_string(); }
  Place place() const { return arguments.place(); }
};

Value string_list(const Input& in, std::vector<std::string> parts) {
  in.budget.items(in.place(), parts.size());
  List out;
  for (std::string& p : parts) out.emplace_back(std::move(p));
  return Value(std::move(out));
}

/// startswith and endswith: one string or a list of them.
Value has_affix(const Input& in, bool start) {
  const Value& affix = in.arguments.required(start ? "prefix" : "suffix");
  const auto one = [&](const Value& v) {
    if (!v.is_string()) throw error_at(in.place(), cat("expected a string, got ", v.kind_name()));
    return start ? in.text().starts_with(v.as_string()) : in.text().ends_with(v.as_string());
  };
  if (!affix.is_list()) return Value(one(affix));
  return Value(std::any_of(affix.as_list().begin(), affix.as_list().end(), one));
}

Value rsplit(const Input& in) {
  const std::string separator = in.arguments.string("sep", "");
  const int64_t limit = in.arguments.integer("maxsplit", -1);
  std::vector<std::string> parts = split(in.text(), separator, -1);
  if (limit >= 0 && int64_t(parts.size()) > limit + 1) {
    if (separator.empty()) throw error_at(in.place(), "'rsplit' with a limit needs a separator");
    std::string head = parts[0];
    const size_t joined = parts.size() - size_t(limit);
    for (size_t i = 1; i < joined; ++i) head.append(separator).append(parts[i]);
    parts.erase(parts.begin(), parts.begin() + long(joined) - 1);
    parts[0] = std::move(head);
  }
  return string_list(in, std::move(parts));
}

Value find_text(const Input& in, bool last) {
  const std::string what = in.arguments.required_string("sub");
  const size_t at = last ? in.text().rfind(what) : in.text().find(what);
  if (at == std::string::npos) return Value(-1);
  return Value(int64_t(count_characters(std::string_view(in.text()).substr(0, at))));
}

Value count_text(const Input& in) {
  const std::string what = in.arguments.required_string("sub");
  if (what.empty()) return Value(int64_t(count_characters(in.text())) + 1);
  int64_t n = 0;
  for (size_t at = in.text().find(what); at != std::string::npos; at = in.text().find(what, at + what.size()))
    ++n;
  return Value(n);
}

Value join_method(const Input& in) {
  std::string out;
  bool first = true;
  for (const Value& v : elements(in.arguments.required("iterable"), in.place(), in.budget)) {
    if (!v.is_string()) throw error_at(in.place(), cat("'join' needs strings, got ", v.kind_name()));
    if (!first) out.append(in.text());
    first = false;
    out.append(v.as_string());
    if (out.size() > Budget::kMaxText) in.budget.text(in.place(), out.size());
  }
  in.budget.text(in.place(), out.size());
  return Value(std::move(out));
}

Value replace_method(const Input& in) {
  const std::string from = in.arguments.required_string("old"), to = in.arguments.required_string("new");
  const int64_t limit = in.arguments.integer("count", -1);
  const size_t places = in.text().size() / std::max<size_t>(1, from.size()) + 1;
  in.budget.text(in.place(), in.text().size() + places * to.size());
  return Value(replace(in.text(), from, to, limit));
}

/// All characters have one of the class bits, and there is one.
Value all_of_class(const Input& in, uint8_t bits) {
  const CharClasses classes;
  const std::string& s = in.text();
  for (size_t i = 0; i < s.size();) {
    const Decoded c = decode_utf8(s, i);
    if (!(classes[c.code] & bits)) return Value(false);
    i += c.length;
  }
  return Value(!s.empty());
}

Value strip_method(const Input& in, bool left, bool right) {
  return Value(strip(in.text(), in.arguments.string("chars", ""), left, right));
}

Value without_affix(const Input& in, bool prefix) {
  const std::string affix = in.arguments.required_string(prefix ? "prefix" : "suffix");
  const std::string& s = in.text();
  if (prefix) return s.starts_with(affix) ? Value(s.substr(affix.size())) : in.self;
  return s.ends_with(affix) ? Value(s.substr(0, s.size() - affix.size())) : in.self;
}

using Method = Value (*)(const Input&);

const std::map<std::string_view, Method>& string_methods() {
  static const std::map<std::string_view, Method> table = {
      {"capitalize", [](const Input& in) { return Value(capitalize(in.text())); }},
      {"count", count_text},
      {"endswith", [](const Input& in) { return has_affix(in, false); }},
      {"find", [](const Input& in) { return find_text(in, false); }},
      {"isalpha", [](const Input& in) { return all_of_class(in, kLetter); }},
      {"isdigit", [](const Input& in) { return all_of_class(in, kNumber); }},
      {"isspace", [](const Input& in) { return all_of_class(in, kSpace); }},
      {"join", join_method},
      {"lower", [](const Input& in) { return Value(lower(in.text())); }},
      {"lstrip", [](const Input& in) { return strip_method(in, true, false); }},
      {"removeprefix", [](const Input& in) { return without_affix(in, true); }},
      {"removesuffix", [](const Input& in) { return without_affix(in, false); }},
      {"replace", replace_method},
      {"rfind", [](const Input& in) { return find_text(in, true); }},
      {"rsplit", rsplit},
      {"rstrip", [](const Input& in) { return strip_method(in, false, true); }},
      {"split",
       [](const Input& in) {
         const std::string separator = in.arguments.string("sep", "");
         return string_list(in, split(in.text(), separator, in.arguments.integer("maxsplit", -1)));
       }},
      {"splitlines",
       [](const Input& in) {
         return string_list(in, split_lines(in.text(), in.arguments.boolean("keepends", false)));
       }},
      {"startswith", [](const Input& in) { return has_affix(in, true); }},
      {"strip", [](const Input& in) { return strip_method(in, true, true); }},
      {"title", [](const Input& in) { return Value(title(in.text())); }},
      {"upper", [](const Input& in) { return Value(upper(in.text())); }},
  };
  return table;
}

const std::map<std::string_view, Method>& dict_methods() {
  static const std::map<std::string_view, Method> table = {
      {"get",
       [](const Input& in) {
         const Value& key = in.arguments.required("key");
         const Value* otherwise = in.arguments.optional("default");
         const Value* found = key.is_string() ? in.self.as_dict().find(key.as_string()) : nullptr;
         return found ? *found : otherwise ? *otherwise : Value();
       }},
      {"items",
       [](const Input& in) {
         List out;
         for (const auto& [key, value] : in.self.as_dict()) out.push_back(Value::tuple({Value(key), value}));
         in.budget.items(in.place(), out.size());
         return Value(std::move(out));
       }},
      {"keys", [](const Input& in) { return Value(elements(in.self, in.place(), in.budget)); }},
      {"values",
       [](const Input& in) {
         List out;
         for (const auto& [key, value] : in.self.as_dict()) out.push_back(value);
         in.budget.items(in.place(), out.size());
         return Value(std::move(out));
       }},
  };
  return table;
}

}  // namespace

Value find_method(const Value& object, std::string_view name, Runtime& runtime) {
  const std::map<std::string_view, Method>* table = nullptr;
  if (object.is_string()) table = &string_methods();
  if (object.is_dict()) table = &dict_methods();
  if (!table) return Value::undefined(name);
  const auto found = table->find(name);
  if (found == table->end()) return Value::undefined(name);
  return make_function(
      [object, method = found->second, &runtime](CallArguments& arguments) {
        const size_t bytes = object.is_string() ? object.as_string().size() : 0;
        runtime.budget.step(arguments.place(), 1 + bytes / 64);
        Value result = method({object, arguments, runtime.budget});
        arguments.finish();
        return result;
      },
      object.depth() + 1);
}

}  // namespace rlx::text::jinja
