// Values that only exist while a template runs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/text/template/ast.h"
#include "rlx/text/value.h"

namespace rlx::text {

/// Arguments of a call, evaluated. Takers ask for them by position or name; finish() refuses what nobody
/// took.
class CallArguments {
 public:
  CallArguments(std::string_view callee, jinja::Place place) : callee_(callee), place_(place) {}

  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  const std::string& callee() const { return callee_; }
  jinja::Place place() const { return place_; }

  /// The next parameter: by position, else by name, else null.
  const Value* optional(std::string_view name);
  /// By name only.
  const Value* by_name(std::string_view name);
  const Value& required(std::string_view name);
  int64_t integer(std::string_view name, int64_t otherwise);
  bool boolean(std::string_view name, bool otherwise);
  std::string string(std::string_view name, std::string_view otherwise);
  std::string required_string(std::string_view name);
  /// Arguments by position that nobody took yet, and those by name; they count as taken.
  List rest();
  Dict rest_by_name();
  /// Marks every argument as taken.
  void take_all();
  /// Throws when an argument was not asked for.
  void finish() const;

 private:
  std::string callee_;
  jinja::Place place_;
  size_t next_ = 0;
  std::vector<bool> named_taken_;
};

class Object {
 public:
  virtual ~Object() = default;
  virtual Value call(CallArguments& arguments);
  /// Undefined when there is no such attribute.
  virtual Value get(std::string_view name) const { return Value::undefined(name); }
  virtual bool is_callable() const { return true; }
  /// How str() shows it.
  virtual std::string shown() const { return "<function>"; }
  /// Sets an attribute; false when this object has none to set.
  virtual bool set(std::string_view, Value) { return false; }
};

namespace jinja {

using Function = std::function<Value(CallArguments&)>;

class FunctionObject final : public Object {
 public:
  explicit FunctionObject(Function f) : function_(std::move(f)) {}
  Value call(CallArguments& arguments) override { return function_(arguments); }

 private:
  Function function_;
};

/// `depth` is that of the values the function holds.
inline Value make_function(Function f, int depth = 0) {
  return Value(std::make_shared<FunctionObject>(std::move(f)), depth);
}

/// What a loop can run over that is no list: a range, a view of a dict, what a filter hands out one by one.
class Sequence final : public Object {
 public:
  enum class Kind { range, keys, values, items, generator };
  Sequence(Kind kind, List list, std::string text = {})
      : kind_(kind), list_(std::move(list)), text_(std::move(text)) {}
  bool is_callable() const override { return false; }

  Kind kind() const { return kind_; }
  const List& list() const { return list_; }
  /// A generator gives each of its elements once: all that are left, or the first of them.
  List take_rest() { return std::exchange(list_, {}); }
  /// How it is shown: `range(0, 3)`, or the name that goes before the list of elements.
  const std::string& text() const { return text_; }
  List& left() { return list_; }

 private:
  Kind kind_;
  List list_;
  std::string text_;
};

/// The value as a sequence, or null.
Sequence* sequence_of(const Value& v);
Value make_sequence(Sequence::Kind kind, List list, std::string text = {});
Value make_generator(List list);

class Namespace final : public Object {
 public:
  Value get(std::string_view name) const override {
    const Value* v = values.find(name);
    return v ? *v : Value::undefined(name);
  }
  bool set(std::string_view name, Value value) override {
    values.set(name, std::move(value));
    return true;
  }
  bool is_callable() const override { return false; }
  std::string shown() const override { return "<Namespace>"; }
  Dict values;
};

}  // namespace jinja
}  // namespace rlx::text
