#include "rlx/text/value.h"

#include <algorithm>
#include <bit>

#include "rlx/base/error.h"
#include "rlx/text/hash.h"

namespace rlx::text {

namespace {

constexpr size_t kLinearSearch = 16;

}  // namespace

const Value* Dict::find(std::string_view key) const {
  if (slots_.empty()) {
    for (const auto& [name, value] : items_)
      if (name == key) return &value;
    return nullptr;
  }
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash_bytes(key) & mask; slots_[at]; at = (at + 1) & mask) {
    if (items_[slots_[at] - 1].first == key) return &items_[slots_[at] - 1].second;
  }
  return nullptr;
}

Value* Dict::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

void Dict::set(std::string_view key, Value value) {
  if (Value* present = find(key)) {
    *present = std::move(value);
    return;
  }
  items_.emplace_back(std::string(key), std::move(value));
  if (items_.size() <= kLinearSearch) return;
  const auto add = [&](size_t i) {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_bytes(items_[i].first) & mask;
    while (slots_[at]) at = (at + 1) & mask;
    slots_[at] = uint32_t(i) + 1;
  };
  if (items_.size() * 2 <= slots_.size()) return add(items_.size() - 1);
  slots_.assign(std::bit_ceil(items_.size() * 4), 0);
  for (size_t i = 0; i < items_.size(); ++i) add(i);
}

void Value::set_depth(int depth) {
  if (depth > kMaxDepth)
    throw invalid("value: lists and objects are nested deeper than ", kMaxDepth, " levels");
  depth_ = int16_t(depth);
}

Value::Value(List list) {
  int depth = 0;
  for (const Value& v : list) depth = std::max(depth, v.depth());
  set_depth(depth + 1);
  data_ = std::make_shared<List>(std::move(list));
}

Value::Value(Dict dict) {
  int depth = 0;
  for (const auto& [key, v] : dict) depth = std::max(depth, v.depth());
  set_depth(depth + 1);
  data_ = std::make_shared<Dict>(std::move(dict));
}

Value::Value(std::shared_ptr<Object> object, int depth) : data_(std::move(object)) { set_depth(depth); }

std::string_view Value::kind_name() const {
  constexpr std::string_view kNames[] = {"null",   "undefined", "boolean", "integer", "number",
                                         "string", "list",      "object",  "function"};
  return kNames[data_.index()];
}

Fields::Fields(const Value& value, std::string where) : keep_(value), where_(std::move(where)) {
  if (!value.is_dict()) throw invalid(where_, ": expected an object, got ", value.kind_name());
  dict_ = &keep_.as_dict();
}

const Value* Fields::find(std::string_view key) const {
  const Value* v = dict_->find(key);
  return v && !v->is_none() ? v : nullptr;
}

const Value& Fields::at(std::string_view key) const {
  const Value* v = find(key);
  if (!v) throw invalid(where_, ": field '", key, "' is missing");
  return *v;
}

bool Fields::boolean(std::string_view key, bool otherwise) const {
  const Value* v = find(key);
  if (!v) return otherwise;
  if (!v->is_bool()) throw invalid(path(key), ": expected true or false, got ", v->kind_name());
  return v->as_bool();
}

int64_t Fields::integer(std::string_view key, int64_t otherwise) const {
  const Value* v = find(key);
  if (!v) return otherwise;
  if (!v->is_int()) throw invalid(path(key), ": expected an integer, got ", v->kind_name());
  return v->as_int();
}

std::string Fields::string(std::string_view key) const {
  const Value& v = at(key);
  if (!v.is_string()) throw invalid(path(key), ": expected a string, got ", v.kind_name());
  return v.as_string();
}

std::string Fields::string(std::string_view key, std::string_view otherwise) const {
  return find(key) ? string(key) : std::string(otherwise);
}

const List& Fields::list(std::string_view key) const {
  const Value& v = at(key);
  if (!v.is_list()) throw invalid(path(key), ": expected a list, got ", v.kind_name());
  return v.as_list();
}

Fields Fields::object(std::string_view key) const { return Fields(at(key), path(key)); }

}  // namespace rlx::text
