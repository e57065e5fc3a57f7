// Filters of text.
#include <algorithm>

#include "rlx/text/template/filters.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/string_format.h"
#include "rlx/text/template/text_functions.h"
#include "rlx/text/template/word_wrap.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

Value escape_filter(const FilterInput& in) {
  if (in.value.is_markup()) return in.value;
  std::string out = escape_markup(in.text());
  in.budget().text(in.place(), out.size());
  return Value::markup(std::move(out));
}

Value indent_filter(const FilterInput& in) {
  const Value* width = in.arguments.optional("width");
  const bool first = in.arguments.boolean("first", false), blank = in.arguments.boolean("blank", false);
  std::string margin(4, ' ');
  if (width && width->is_string()) margin = width->as_string();
  if (width && width->is_int()) margin.assign(size_t(std::clamp<int64_t>(width->as_int(), 0, 1000)), ' ');
  const std::string text = in.text();
  const auto lines = size_t(std::count(text.begin(), text.end(), '\n')) + 1;
  in.budget().text(in.place(), text.size() + lines * margin.size());
  return in.text_result(indent(text, margin, first, blank));
}

Value replace_filter(const FilterInput& in) {
  const std::string from = to_text(in.arguments.required("old"), in.place(), in.budget());
  const std::string to = to_text(in.arguments.required("new"), in.place(), in.budget());
  const int64_t limit = in.arguments.integer("count", -1);
  const std::string text = in.text();
  in.budget().text(in.place(),
                   text.size() + (text.size() / std::max<size_t>(1, from.size()) + 1) * to.size());
  return Value(replace(text, from, to, limit));
}

// `format | format(values)` is `format % values`.
Value format_filter(const FilterInput& in) {
  List positional = in.arguments.rest();
  Dict named = in.arguments.rest_by_name();
  if (!positional.empty() && !named.empty())
    throw error_at(in.place(), "'format' takes values by position or by name, not both");
  const Value values = named.empty() ? Value::tuple(std::move(positional)) : Value(std::move(named));
  return in.text_result(format_percent(in.text(), values, {in.place(), in.budget(), in.value.is_markup()}));
}

Value truncate(const FilterInput& in) {
  const int64_t length = in.arguments.integer("length", 255);
  const bool kill_words = in.arguments.boolean("killwords", false);
  const std::string end = in.arguments.string("end", "...");
  const int64_t leeway = in.arguments.integer("leeway", 5);
  const std::string text = in.text();
  const auto end_length = int64_t(count_characters(end));
  if (length < end_length || leeway < 0)
    throw error_at(in.place(), cat("'truncate': a length of ", length, " has no room for '", end, "'"));
  if (int64_t(count_characters(text)) - leeway <= length)
    return in.value.is_string() ? in.value : Value(text);
  std::string kept = text.substr(0, prefix_bytes(text, length - end_length));
  if (!kill_words) kept = kept.substr(0, kept.rfind(' '));
  return in.text_result(kept + end);
}

Value wordwrap(const FilterInput& in) {
  WrapOptions options;
  options.width = in.arguments.integer("width", 79);
  options.break_long_words = in.arguments.boolean("break_long_words", true);
  const std::string between = in.arguments.string("wrapstring", "\n");
  options.break_on_hyphens = in.arguments.boolean("break_on_hyphens", true);
  if (options.width < 1) throw error_at(in.place(), cat("'wordwrap': a width of ", options.width));
  std::string out;
  bool first = true;
  for (const std::string& line : split_lines(in.text(), false)) {
    if (!first) out.append(between);
    first = false;
    const std::vector<std::string> wrapped = wrap_words(line, options);
    for (size_t i = 0; i < wrapped.size(); ++i) {
      if (i > 0) out.append(between);
      out.append(wrapped[i]);
      in.budget().text(in.place(), out.size());
    }
  }
  return in.plain_result(std::move(out));
}

// An object, or a list of pairs, is a query; anything else a part of a path.
Value urlencode(const FilterInput& in) {
  const auto text = [&](const Value& v) { return to_text(v, in.place(), in.budget()); };
  List pairs;
  if (in.value.is_dict()) {
    for (const auto& [key, value] : in.value.as_dict()) pairs.push_back(Value::tuple({key, value}));
  } else if (!in.value.is_string() && (in.value.is_list() || sequence_of(in.value))) {
    pairs = in.list();
  } else {
    return in.plain_result(url_quoted(in.text(), "/"));
  }
  std::string out;
  for (const Value& pair : pairs) {
    const List both = elements(pair, in.place(), in.budget());
    if (both.size() != 2) throw error_at(in.place(), "'urlencode' needs pairs");
    if (!out.empty()) out.push_back('&');
    const auto quoted = [&](const Value& v) { return replace(url_quoted(text(v), ""), "%20", "+", -1); };
    out.append(quoted(both[0])).append("=").append(quoted(both[1]));
    in.budget().text(in.place(), out.size());
  }
  return in.plain_result(std::move(out));
}

Value xmlattr(const FilterInput& in) {
  const bool space = in.arguments.boolean("autospace", true);
  if (!in.value.is_dict())
    throw error_at(in.place(), cat("'xmlattr' needs an object, got ", in.value.kind_name()));
  std::string out;
  for (const auto& [key, value] : in.value.as_dict()) {
    if (value.is_none() || value.is_undefined()) continue;
    const std::string name = to_text(key, in.place(), in.budget());
    if (name.find_first_of(" \t\n\r\f/>=") != name.npos)
      throw error_at(in.place(), cat("'xmlattr': '", name, "' is no name of an attribute"));
    const std::string text = to_text(value, in.place(), in.budget());
    if (!out.empty()) out.push_back(' ');
    out.append(escape_markup(name)).append("=\"");
    out.append(value.is_markup() ? text : escape_markup(text)).append("\"");
    in.budget().text(in.place(), out.size());
  }
  if (space && !out.empty()) out.insert(out.begin(), ' ');
  return in.plain_result(std::move(out));
}

Value center_filter(const FilterInput& in) {
  const int64_t width = in.arguments.integer("width", 80);
  in.budget().text(in.place(), size_t(std::max<int64_t>(0, width)));
  return in.text_result(centered(in.text(), width, " "));
}

}  // namespace

const FilterTable& text_filters() {
  using In = FilterInput;
  static const FilterTable table = {
      {"capitalize", [](const In& in) { return in.text_result(capitalize(in.text())); }},
      {"center", center_filter},
      {"e", escape_filter},
      {"escape", escape_filter},
      {"forceescape", [](const In& in) { return Value::markup(escape_markup(in.text())); }},
      {"format", format_filter},
      {"indent", indent_filter},
      {"lower", [](const In& in) { return in.text_result(lower(in.text())); }},
      {"replace", replace_filter},
      {"safe", [](const In& in) { return Value::markup(in.text()); }},
      {"string", [](const In& in) { return in.text_result(in.text()); }},
      {"striptags", [](const In& in) { return in.plain_result(without_tags(in.text())); }},
      {"title", [](const In& in) { return in.plain_result(title_words(in.text())); }},
      {"trim",
       [](const In& in) {
         return in.text_result(strip(in.text(), in.arguments.string("chars", ""), true, true));
       }},
      {"truncate", truncate},
      {"upper", [](const In& in) { return in.text_result(upper(in.text())); }},
      {"urlencode", urlencode},
      {"wordcount", [](const In& in) { return Value(count_words(in.text())); }},
      {"wordwrap", wordwrap},
      {"xmlattr", xmlattr},
  };
  return table;
}

}  // namespace rlx::text::jinja
