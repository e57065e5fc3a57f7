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
  const Value& required(std::string_view name);
  int64_t integer(std::string_view name, int64_t otherwise);
  bool boolean(std::string_view name, bool otherwise);
  std::string string(std::string_view name, std::string_view otherwise);
  std::string required_string(std::string_view name);
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
  Dict values;
};

}  // namespace jinja
}  // namespace rlx::text
