// Tests: `a is name(b)`.
#include <map>

#include "rlx/text/template/builtins.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/text_functions.h"

namespace rlx::text::jinja {

namespace {

struct Input {
  const Value& value;
  CallArguments& arguments;
  Budget& budget;

  std::string text() const { return to_text(value, arguments.place(), budget); }
  const Value& other() const { return arguments.required("other"); }
  int order_to_other() const { return order(value, other(), arguments.place(), budget); }
  int64_t remainder(int64_t by) const {
    if (!value.is_int()) throw error_at(arguments.place(), cat("needs an integer, got ", value.kind_name()));
    if (by == 0) throw error_at(arguments.place(), "division by zero");
    return by == -1 ? 0 : value.as_int() % by;
  }
};

bool equal_test(const Input& in) { return equal(in.value, in.other(), in.arguments.place(), in.budget); }
bool same(const Input& in) {
  const Value& other = in.other();
  return in.value.kind_name() == other.kind_name() && equal(in.value, other, in.arguments.place(), in.budget);
}
bool greater(const Input& in) { return in.order_to_other() > 0; }
bool at_least(const Input& in) { return in.order_to_other() >= 0; }
bool less(const Input& in) { return in.order_to_other() < 0; }
bool at_most(const Input& in) { return in.order_to_other() <= 0; }
bool not_equal(const Input& in) { return !equal_test(in); }

bool iterable(const Input& in) {
  const Value& v = in.value;
  return v.is_string() || v.is_list() || v.is_dict() || v.is_undefined() || sequence_of(v);
}

// It has a length and elements by number or name.
bool is_sequence(const Input& in) {
  const Sequence* s = sequence_of(in.value);
  return s ? s->kind() == Sequence::Kind::range : iterable(in);
}

using Test = bool (*)(const Input&);

const std::map<std::string_view, Test>& tests() {
  static const std::map<std::string_view, Test> table = {
      {"!=", not_equal},
      {"<", less},
      {"<=", at_most},
      {"==", equal_test},
      {">", greater},
      {">=", at_least},
      {"boolean", [](const Input& in) { return in.value.is_bool(); }},
      {"callable",
       [](const Input& in) { return in.value.is_object() && in.value.as_object()->is_callable(); }},
      {"defined", [](const Input& in) { return !in.value.is_undefined(); }},
      {"divisibleby", [](const Input& in) { return in.remainder(in.arguments.integer("num", 0)) == 0; }},
      {"eq", equal_test},
      {"equalto", equal_test},
      {"escaped", [](const Input& in) { return in.value.is_markup(); }},
      {"even", [](const Input& in) { return in.remainder(2) == 0; }},
      {"false", [](const Input& in) { return in.value.is_bool() && !in.value.as_bool(); }},
      {"filter", [](const Input& in) { return in.value.is_string() && is_filter(in.value.as_string()); }},
      {"float", [](const Input& in) { return in.value.is_double(); }},
      {"ge", at_least},
      {"greaterthan", greater},
      {"gt", greater},
      {"in", [](const Input& in) { return contains(in.other(), in.value, in.arguments.place(), in.budget); }},
      {"integer", [](const Input& in) { return in.value.is_int(); }},
      {"iterable", iterable},
      {"le", at_most},
      {"lessthan", less},
      {"lower", [](const Input& in) { return has_case(in.text(), LetterCase::lower); }},
      {"lt", less},
      {"mapping", [](const Input& in) { return in.value.is_dict(); }},
      {"ne", not_equal},
      {"none", [](const Input& in) { return in.value.is_none(); }},
      {"number", [](const Input& in) { return in.value.is_number() || in.value.is_bool(); }},
      {"odd", [](const Input& in) { return in.remainder(2) != 0; }},
      {"sameas", same},
      {"sequence", is_sequence},
      {"string", [](const Input& in) { return in.value.is_string(); }},
      {"test", [](const Input& in) { return in.value.is_string() && is_test(in.value.as_string()); }},
      {"true", [](const Input& in) { return in.value.is_bool() && in.value.as_bool(); }},
      {"undefined", [](const Input& in) { return in.value.is_undefined(); }},
      {"upper", [](const Input& in) { return has_case(in.text(), LetterCase::upper); }},
  };
  return table;
}

}  // namespace

bool is_test(std::string_view name) { return tests().count(name) != 0; }

bool apply_test(std::string_view name, const Value& input, CallArguments& arguments, Runtime& runtime) {
  const auto found = tests().find(name);
  if (found == tests().end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, t] : tests()) names.push_back(known);
    throw error_at(arguments.place(), cat("no test named '", name, "'; known: ", join(names)));
  }
  runtime.budget.step(arguments.place());
  const bool result = found->second({input, arguments, runtime.budget});
  arguments.finish();
  return result;
}

}  // namespace rlx::text::jinja
