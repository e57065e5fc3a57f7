// Methods of lists and dicts, and how a method is found. Those that would change a value are left out:
// templates work on values they share with their caller.
#include "rlx/text/template/methods.h"

#include "rlx/text/template/lexer.h"

namespace rlx::text::jinja {

namespace {

using In = MethodInput;

Value view(const In& in, Sequence::Kind kind, std::string_view name) {
  List out;
  for (const auto& [key, value] : in.self.as_dict()) {
    if (kind == Sequence::Kind::keys) out.push_back(key);
    if (kind == Sequence::Kind::values) out.push_back(value);
    if (kind == Sequence::Kind::items) out.push_back(Value::tuple({key, value}));
  }
  in.budget.items(in.place(), out.size());
  return make_sequence(kind, std::move(out), std::string(name));
}

Value get_method(const In& in) {
  const Value& key = in.arguments.required("key");
  const Value* otherwise = in.arguments.optional("default");
  if (!Dict::is_key(key)) throw error_at(in.place(), cat(key.kind_name(), " cannot be a key"));
  const Value* found = in.self.as_dict().find_key(key);
  return found ? *found : otherwise ? *otherwise : Value();
}

const MethodTable& dict_methods() {
  static const MethodTable table = {
      {"copy", [](const In& in) { return Value(in.self.as_dict()); }},
      {"get", get_method},
      {"items", [](const In& in) { return view(in, Sequence::Kind::items, "dict_items"); }},
      {"keys", [](const In& in) { return view(in, Sequence::Kind::keys, "dict_keys"); }},
      {"values", [](const In& in) { return view(in, Sequence::Kind::values, "dict_values"); }},
  };
  return table;
}

Value index_method(const In& in) {
  const Value& wanted = in.arguments.required("value");
  const List& list = in.self.as_list();
  for (size_t i = 0; i < list.size(); ++i)
    if (equal(list[i], wanted, in.place(), in.budget)) return Value(int64_t(i));
  throw error_at(in.place(), "'index': the value is not in the list");
}

Value count_method(const In& in) {
  const Value& wanted = in.arguments.required("value");
  int64_t count = 0;
  for (const Value& v : in.self.as_list()) count += equal(v, wanted, in.place(), in.budget);
  return Value(count);
}

const MethodTable& list_methods() {
  static const MethodTable table = {
      {"copy", [](const In& in) { return Value(elements(in.self, in.place(), in.budget)); }},
      {"count", count_method},
      {"index", index_method},
  };
  return table;
}

}  // namespace

Value find_method(const Value& object, std::string_view name, Runtime& runtime) {
  const MethodTable* table = nullptr;
  if (object.is_string()) table = &string_methods();
  if (object.is_list()) table = &list_methods();
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
