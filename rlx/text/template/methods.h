// What the files of methods share.
#pragma once

#include <map>
#include <string_view>

#include "rlx/text/template/builtins.h"

namespace rlx::text::jinja {

/// `self.name(arguments)`.
struct MethodInput {
  const Value& self;
  CallArguments& arguments;
  Budget& budget;

  const std::string& text() const { return self.as_string(); }
  Place place() const { return arguments.place(); }
  /// A string made from the text; markup stays markup.
  Value result(std::string text) const {
    budget.text(place(), text.size());
    return self.is_markup() ? Value::markup(std::move(text)) : Value(std::move(text));
  }
};

using Method = Value (*)(const MethodInput&);
using MethodTable = std::map<std::string_view, Method>;

const MethodTable& string_methods();  // string_methods.cpp

}  // namespace rlx::text::jinja
