// A small dynamic value: what JSON holds, and what chat templates compute with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rlx::text {

class Value;

using List = std::vector<Value>;
class Dict;

/// What only a template knows: a macro, a global function, a bound method, a namespace. See
/// template/object.h.
class Object;

/// Lists and dicts are shared, as in Python: a copy of the value is the same list. They are not changed once
/// they are part of another value.
class Value {
 public:
  /// A name that stands for nothing, in a template.
  struct Undefined {
    std::string name;  // what was looked up, for messages
  };
  /// null in JSON, None in a template.
  struct None {};

  // Templates and JSON are written with plain values.
  // NOLINTBEGIN(google-explicit-constructor)
  Value() : data_(None{}) {}
  Value(bool b) : data_(b) {}
  Value(int64_t i) : data_(i) {}
  Value(int i) : data_(int64_t(i)) {}
  Value(double d) : data_(d) {}
  Value(std::string s) : data_(std::make_shared<const std::string>(std::move(s))) {}
  Value(std::string_view s) : Value(std::string(s)) {}
  Value(const char* s) : Value(std::string(s)) {}
  Value(List list);
  Value(Dict dict);
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  // NOLINTEND(google-explicit-constructor)
  /// `depth` is that of the values the object holds.
  explicit Value(std::shared_ptr<Object> object, int depth = 0);
  /// A string that is markup already: other text is escaped where it joins it.
  static Value markup(std::string text) {
    Value v(std::move(text));
    v.markup_ = true;
    return v;
  }
  /// A list that Python would show in parentheses.
  static Value tuple(List list) {
    Value v(std::move(list));
    v.tuple_ = true;
    return v;
  }
  static Value undefined(std::string_view name = {}) { return Value(Undefined{std::string(name)}); }

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_double() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<SharedString>(data_); }
  bool is_markup() const { return markup_; }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<List>>(data_); }
  bool is_tuple() const { return tuple_; }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<Dict>>(data_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(data_); }

  // Each needs the matching is_...().
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return std::get<int64_t>(data_); }
  double as_double() const { return is_int() ? double(as_int()) : std::get<double>(data_); }
  const std::string& as_string() const { return *std::get<SharedString>(data_); }
  const List& as_list() const { return *std::get<std::shared_ptr<List>>(data_); }
  List& as_list() { return *std::get<std::shared_ptr<List>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }
  Dict& as_dict() { return *std::get<std::shared_ptr<Dict>>(data_); }
  const std::shared_ptr<Object>& as_object() const { return std::get<std::shared_ptr<Object>>(data_); }
  const std::string& undefined_name() const { return std::get<Undefined>(data_).name; }

  /// How deep lists and dicts are nested in this one; 0 for plain values. Deeper than kMaxDepth is an error,
  /// so that walking a value can be recursive.
  static constexpr int kMaxDepth = 400;
  /// How deep its lists and dicts are nested.
  int depth() const { return depth_; }

  /// "string", "list", ... for messages.
  std::string_view kind_name() const;

 private:
  using SharedString = std::shared_ptr<const std::string>;
  std::variant<None, Undefined, bool, int64_t, double, SharedString, std::shared_ptr<List>,
               std::shared_ptr<Dict>, std::shared_ptr<Object>>
      data_;
  void set_depth(int depth);
  int16_t depth_ = 0;
  bool tuple_ = false, markup_ = false;
};

/// Keys in the order they were first set. JSON has strings for keys; templates have numbers, null and tuples
/// too, where equal numbers are one key whatever their kind.
class Dict {
 public:
  /// The value of that key; null when there is none.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  /// Adds a key, or gives one another value.
  void set(std::string_view key, Value value);

  /// Whether a value can be a key: lists, objects and what is undefined cannot.
  static bool is_key(const Value& value);
  // As find and set, for keys that are no strings.
  const Value* find_key(const Value& key) const;
  void set_key(const Value& key, Value value);

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  /// The pair at that place.
  const std::pair<Value, Value>& operator[](size_t i) const { return items_[i]; }

 private:
  void add(Value key, uint64_t hash, Value value);

  std::vector<std::pair<Value, Value>> items_;
  std::vector<uint32_t> slots_;  // open addressing, index + 1; filled once a linear search would be slow
};

/// Reads fields of a JSON object with messages that say where: `pre_tokenizer.pattern: expected a string, got
/// list`. A missing field gives the default where there is one and is an error where there is none.
class Fields {
 public:
  Fields(const Value& value, std::string where);

  const std::string& where() const { return where_; }
  const Value* find(std::string_view key) const;  // null when absent or JSON null
  /// The field, which must be there.
  const Value& at(std::string_view key) const;
  // The field as what it must be; `otherwise` where it is missing, else a missing one is an error.
  bool boolean(std::string_view key, bool otherwise) const;
  int64_t integer(std::string_view key, int64_t otherwise) const;
  std::string string(std::string_view key) const;
  std::string string(std::string_view key, std::string_view otherwise) const;
  const List& list(std::string_view key) const;
  Fields object(std::string_view key) const;
  /// The place of a field, for messages.
  std::string path(std::string_view key) const { return where_ + "." + std::string(key); }

 private:
  const Dict* dict_;
  Value keep_;
  std::string where_;
};

}  // namespace rlx::text
