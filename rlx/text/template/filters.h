// What the files of filters share. Each has its functions and a table of their names.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "rlx/text/template/builtins.h"

namespace rlx::text::jinja {

/// `value | name(arguments)`.
struct FilterInput {
  const Value& value;
  CallArguments& arguments;
  Runtime& runtime;

  Place place() const { return arguments.place(); }
  Budget& budget() const { return runtime.budget; }
  std::string text() const { return to_text(value, place(), budget()); }
  List list() const { return elements(value, place(), budget()); }
  /// A string made from the input; markup stays markup.
  Value text_result(std::string text) const {
    budget().text(place(), text.size());
    return value.is_markup() ? Value::markup(std::move(text)) : Value(std::move(text));
  }
  Value plain_result(std::string text) const {
    budget().text(place(), text.size());
    return Value(std::move(text));
  }
};

using Filter = Value (*)(const FilterInput&);
using FilterTable = std::map<std::string_view, Filter>;

const FilterTable& text_filters();   // filters_text.cpp
const FilterTable& list_filters();   // filters_list.cpp
const FilterTable& value_filters();  // filters.cpp

}  // namespace rlx::text::jinja
