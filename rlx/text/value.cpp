#include "rlx/text/value.h"

#include <algorithm>
#include <bit>

#include "rlx/base/error.h"
#include "rlx/text/hash.h"

namespace rlx::text {

namespace {

constexpr size_t kLinearSearch = 16;

}  // namespace

namespace {

bool is_number_like(const Value& v) { return v.is_number() || v.is_bool(); }

// A number that is whole has one form, so that 1, 1.0 and true are the same key.
Value canonical(const Value& v) {
  if (v.is_bool()) return Value(int64_t(v.as_bool()));
  if (!v.is_double()) return v;
  const double d = v.as_double();
  const bool whole = d >= -9e18 && d <= 9e18 && d == double(int64_t(d));
  return whole ? Value(int64_t(d)) : v;
}

uint64_t hash_key(const Value& key) {
  if (key.is_string()) return hash_bytes(key.as_string());
  if (is_number_like(key)) {
    const Value number = canonical(key);
    return hash_u64(number.is_int() ? uint64_t(number.as_int())
                                    : std::bit_cast<uint64_t>(number.as_double()));
  }
  uint64_t hash = 0x9E3779B97F4A7C15u;
  if (key.is_list())
    for (const Value& v : key.as_list()) hash = hash_u64(hash ^ hash_key(v));
  return hash;
}

bool same_key(const Value& a, const Value& b) {
  if (a.is_string() || b.is_string()) return a.is_string() && b.is_string() && a.as_string() == b.as_string();
  if (is_number_like(a) && is_number_like(b)) {
    const Value x = canonical(a), y = canonical(b);
    return x.is_int() && y.is_int() ? x.as_int() == y.as_int() : x.as_double() == y.as_double();
  }
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (!a.is_list() || !b.is_list() || a.as_list().size() != b.as_list().size()) return false;
  return std::equal(a.as_list().begin(), a.as_list().end(), b.as_list().begin(), same_key);
}

// The entry for which `same` holds, looked for where `hash()` says, or from the start in a small dict.
template <class Items, class Hash, class Same>
const Value* search(const Items& items, const std::vector<uint32_t>& slots, Hash hash, Same same) {
  if (slots.empty()) {
    for (const auto& [key, value] : items)
      if (same(key)) return &value;
    return nullptr;
  }
  const size_t mask = slots.size() - 1;
  for (size_t at = hash() & mask; slots[at]; at = (at + 1) & mask)
    if (same(items[slots[at] - 1].first)) return &items[slots[at] - 1].second;
  return nullptr;
}

}  // namespace

bool Dict::is_key(const Value& v) {
  if (v.is_list()) return v.is_tuple() && std::all_of(v.as_list().begin(), v.as_list().end(), is_key);
  return v.is_string() || is_number_like(v) || v.is_none();
}

const Value* Dict::find(std::string_view key) const {
  return search(
      items_, slots_, [&] { return hash_bytes(key); },
      [&](const Value& other) { return other.is_string() && other.as_string() == key; });
}

const Value* Dict::find_key(const Value& key) const {
  return search(
      items_, slots_, [&] { return hash_key(key); },
      [&](const Value& other) { return same_key(other, key); });
}

void Dict::set(std::string_view key, Value value) {
  if (Value* present = find(key)) {
    *present = std::move(value);
  } else {
    add(Value(key), slots_.empty() ? 0 : hash_bytes(key), std::move(value));
  }
}

void Dict::set_key(const Value& key, Value value) {
  if (const Value* present = find_key(key)) {
    *const_cast<Value*>(present) = std::move(value);
  } else {
    add(key, slots_.empty() ? 0 : hash_key(key), std::move(value));
  }
}

void Dict::add(Value key, uint64_t hash, Value value) {
  items_.emplace_back(std::move(key), std::move(value));
  if (items_.size() <= kLinearSearch) return;
  const auto place = [&](size_t i, uint64_t h) {
    const size_t mask = slots_.size() - 1;
    size_t at = h & mask;
    while (slots_[at]) at = (at + 1) & mask;
    slots_[at] = uint32_t(i) + 1;
  };
  if (items_.size() * 2 <= slots_.size()) return place(items_.size() - 1, hash);
  slots_.assign(std::bit_ceil(items_.size() * 4), 0);
  for (size_t i = 0; i < items_.size(); ++i) place(i, hash_key(items_[i].first));
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
  for (const auto& [key, v] : dict) depth = std::max({depth, key.depth(), v.depth()});
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
