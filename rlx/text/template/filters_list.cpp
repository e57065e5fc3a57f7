// Filters of lists and dicts. Those that hand out elements one by one give a generator, which can be gone
// through once.
#include <algorithm>
#include <charconv>
#include <random>

#include "rlx/text/template/filters.h"
#include "rlx/text/template/lexer.h"
#include "rlx/text/template/text_functions.h"

namespace rlx::text::jinja {

namespace {

/// The attribute `path` of a value: names and indices joined by dots.
Value attribute_of(const Value& value, const Value& path, const FilterInput& in) {
  if (path.is_int()) return item(value, path, in.place());
  if (!path.is_string())
    throw error_at(in.place(), cat("an attribute is a string or an integer, got ", path.kind_name()));
  Value v = value;
  for (const std::string& part : split(path.as_string(), ".", -1)) {
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = error == std::errc() && end == part.data() + part.size();
    // The groups of `groupby` are pairs with names.
    const bool of_group = v.is_tuple() && v.as_list().size() == 2 && (part == "grouper" || part == "list");
    v = of_group ? Value(v.as_list()[part == "list"])
                 : item(v, is_index ? Value(index) : Value(part), in.place());
  }
  return v;
}

/// What elements are compared by: themselves or an attribute, strings in lower case unless case counts.
class Key {
 public:
  Key(const FilterInput& in, const Value* attribute, bool case_sensitive)
      : in_(in), case_sensitive_(case_sensitive) {
    if (attribute && !attribute->is_none()) attribute_ = *attribute;
  }
  Value operator()(const Value& v) const {
    return folded(has_attribute() ? attribute_of(v, attribute_, in_) : v);
  }
  bool has_attribute() const { return !attribute_.is_none(); }
  Value folded(Value v) const { return !case_sensitive_ && v.is_string() ? Value(lower(v.as_string())) : v; }

 private:
  const FilterInput& in_;
  Value attribute_;
  bool case_sensitive_;
};

Value join_filter(const FilterInput& in) {
  const Value* separator = in.arguments.optional("d");
  const Value* attribute = in.arguments.optional("attribute");
  const std::string between = separator ? to_text(*separator, in.place(), in.budget()) : "";
  const Key key(in, attribute, true);
  std::string out;
  bool first = true;
  for (const Value& v : in.list()) {
    if (!first) out.append(between);
    first = false;
    out.append(to_text(key(v), in.place(), in.budget()));
    if (out.size() > Budget::kMaxText) in.budget().text(in.place(), out.size());
  }
  return in.plain_result(std::move(out));
}

/// The arguments that `map`, `select` and their kin hand on: all after the first, and those by name.
CallArguments rest_of(const FilterInput& in, std::string_view callee, size_t skip) {
  CallArguments rest(callee, in.place());
  for (size_t i = skip; i < in.arguments.positional.size(); ++i)
    rest.positional.push_back(in.arguments.positional[i]);
  rest.named = in.arguments.named;
  return rest;
}

Value map_filter(const FilterInput& in) {
  List out;
  if (in.arguments.positional.empty() && truth(in.value)) {
    const Value attribute = in.arguments.required("attribute");
    const Value* otherwise = in.arguments.optional("default");
    for (const Value& v : in.list()) {
      Value found = attribute_of(v, attribute, in);
      out.push_back(found.is_undefined() && otherwise ? *otherwise : std::move(found));
    }
    return make_generator(std::move(out));
  }
  if (truth(in.value)) {
    const std::string name = in.arguments.required_string("filter");
    for (const Value& v : in.list()) {
      CallArguments rest = rest_of(in, name, 1);
      out.push_back(apply_filter(name, v, rest, in.runtime));
    }
  }
  in.arguments.take_all();
  return make_generator(std::move(out));
}

/// select, reject, selectattr and rejectattr. Of what is empty or null they leave nothing.
Value pick(const FilterInput& in, bool by_attribute, bool keep) {
  List out;
  if (truth(in.value)) {
    const Value attribute = by_attribute ? in.arguments.required("attribute") : Value();
    const size_t skip = by_attribute ? 1 : 0;
    std::string test;
    if (in.arguments.positional.size() > skip) test = in.arguments.required_string("test");
    for (const Value& v : in.list()) {
      const Value subject = by_attribute ? attribute_of(v, attribute, in) : v;
      CallArguments rest = rest_of(in, test, skip + 1);
      const bool yes = test.empty() ? truth(subject) : apply_test(test, subject, rest, in.runtime);
      if (yes == keep) out.push_back(v);
    }
  }
  in.arguments.take_all();
  return make_generator(std::move(out));
}

// By one attribute or several, which are separated by commas.
Value sort_filter(const FilterInput& in) {
  const bool reverse = in.arguments.boolean("reverse", false);
  const bool case_sensitive = in.arguments.boolean("case_sensitive", false);
  const Value* attribute = in.arguments.optional("attribute");
  std::vector<Value> attributes;
  if (attribute && attribute->is_string())
    for (const std::string& a : split(attribute->as_string(), ",", -1)) attributes.emplace_back(a);
  if (attribute && !attribute->is_string() && !attribute->is_none()) attributes.push_back(*attribute);
  if (attributes.empty()) attributes.emplace_back();
  std::vector<std::pair<List, Value>> keyed;
  for (const Value& v : in.list()) {
    List keys;
    for (const Value& a : attributes) keys.push_back(Key(in, &a, case_sensitive)(v));
    keyed.emplace_back(std::move(keys), v);
  }
  // Comparing may throw, which std::stable_sort survives; equal elements keep their order either way round.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    for (size_t i = 0; i < a.first.size(); ++i) {
      const int o = order(a.first[i], b.first[i], in.place(), in.budget());
      if (o != 0) return reverse ? o > 0 : o < 0;
    }
    return false;
  });
  List out;
  for (auto& [key, v] : keyed) out.push_back(std::move(v));
  return Value(std::move(out));
}

Value groupby(const FilterInput& in) {
  const Value attribute = in.arguments.required("attribute");
  const Value* otherwise = in.arguments.optional("default");
  const Value missing = otherwise ? *otherwise : Value();
  const Key key(in, nullptr, in.arguments.boolean("case_sensitive", false));
  struct Element {
    Value key, shown, value;
  };
  std::vector<Element> elements;
  for (const Value& v : in.list()) {
    Value found = attribute_of(v, attribute, in);
    if (found.is_undefined() && otherwise) found = missing;
    elements.push_back({key.folded(found), found, v});
  }
  std::stable_sort(elements.begin(), elements.end(), [&](const Element& a, const Element& b) {
    return order(a.key, b.key, in.place(), in.budget()) < 0;
  });
  List groups;
  for (size_t i = 0; i < elements.size();) {
    List group;
    const size_t first = i;
    for (; i < elements.size() && equal(elements[i].key, elements[first].key, in.place(), in.budget()); ++i)
      group.push_back(elements[i].value);
    groups.push_back(Value::tuple({elements[first].shown, Value(std::move(group))}));
  }
  return Value(std::move(groups));
}

Value unique_filter(const FilterInput& in) {
  const bool case_sensitive = in.arguments.boolean("case_sensitive", false);
  const Key key(in, in.arguments.optional("attribute"), case_sensitive);
  List out, seen;
  for (const Value& v : in.list()) {
    Value k = key(v);
    bool known = false;
    for (const Value& s : seen) known = known || equal(s, k, in.place(), in.budget());
    if (known) continue;
    seen.push_back(std::move(k));
    out.push_back(v);
  }
  return make_generator(std::move(out));
}

List items_of(const Value& v, Place place) {
  List out;
  if (v.is_undefined()) return out;
  if (!v.is_dict()) throw error_at(place, cat("'items' needs an object, got ", v.kind_name()));
  for (const auto& [key, value] : v.as_dict()) out.push_back(Value::tuple({key, value}));
  return out;
}

Value dictsort(const FilterInput& in) {
  const Key fold(in, nullptr, in.arguments.boolean("case_sensitive", false));
  const std::string by = in.arguments.string("by", "key");
  const bool reverse = in.arguments.boolean("reverse", false);
  if (by != "key" && by != "value") throw error_at(in.place(), cat("'dictsort': cannot sort by '", by, "'"));
  List items = items_of(in.value, in.place());
  const auto key = [&](const Value& pair) { return fold.folded(pair.as_list()[by == "key" ? 0 : 1]); };
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    const int o = order(key(a), key(b), in.place(), in.budget());
    return reverse ? o > 0 : o < 0;
  });
  return Value(std::move(items));
}

/// min and max.
Value extreme(const FilterInput& in, int wanted) {
  const bool case_sensitive = in.arguments.boolean("case_sensitive", false);
  const Key key(in, in.arguments.optional("attribute"), case_sensitive);
  Value best = Value::undefined("empty sequence"), best_key;
  for (const Value& v : in.list()) {
    Value k = key(v);
    if (best.is_undefined() || order(k, best_key, in.place(), in.budget()) == wanted) best = v, best_key = k;
  }
  return best;
}

Value sum_filter(const FilterInput& in) {
  const Key key(in, in.arguments.optional("attribute"), true);
  const Value* start = in.arguments.optional("start");
  Value total = start ? *start : Value(0);
  for (const Value& v : in.list()) total = arithmetic("+", total, key(v), in.place(), in.budget());
  return total;
}

int64_t positive(const FilterInput& in, std::string_view name) {
  const Value& v = in.arguments.required(name);
  if (!v.is_int() || v.as_int() < 1)
    throw error_at(in.place(), cat("'", in.arguments.callee(), "': '", name, "' must be a positive integer"));
  return v.as_int();
}

// Lists of so many elements, the last filled up.
Value batch(const FilterInput& in) {
  const int64_t size = positive(in, "linecount");
  const Value* fill = in.arguments.optional("fill_with");
  List rows, row;
  for (Value& v : in.list()) {
    if (int64_t(row.size()) == size) rows.emplace_back(std::exchange(row, {}));
    row.push_back(std::move(v));
  }
  if (!row.empty()) {
    if (fill && !fill->is_none()) {
      in.budget().items(in.place(), size_t(size));
      while (int64_t(row.size()) < size) row.push_back(*fill);
    }
    rows.emplace_back(std::move(row));
  }
  return make_generator(std::move(rows));
}

// So many lists, the first ones longer by one where it does not come out even.
Value slice_filter(const FilterInput& in) {
  const int64_t count = positive(in, "slices");
  const Value* fill = in.arguments.optional("fill_with");
  const List list = in.list();
  in.budget().items(in.place(), size_t(std::min<int64_t>(count, INT32_MAX)));
  const int64_t each = int64_t(list.size()) / count, longer = int64_t(list.size()) % count;
  List columns;
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = at + each + (i < longer);
    List column(list.begin() + at, list.begin() + end);
    if (fill && !fill->is_none() && i >= longer) column.push_back(*fill);
    columns.emplace_back(std::move(column));
    at = end;
  }
  return make_generator(std::move(columns));
}

Value reverse_filter(const FilterInput& in) {
  List list = in.list();
  std::reverse(list.begin(), list.end());
  if (!in.value.is_string()) return make_generator(std::move(list));
  std::string out;
  for (const Value& v : list) out.append(v.as_string());
  return in.text_result(std::move(out));
}

Value first_filter(const FilterInput& in) {
  if (Sequence* s = sequence_of(in.value);
      s && s->kind() == Sequence::Kind::generator && !s->left().empty()) {
    Value v = s->left().front();
    s->left().erase(s->left().begin());
    return v;
  }
  List list = in.list();
  return list.empty() ? Value::undefined("first of an empty sequence") : std::move(list.front());
}

bool is_generator(const Value& v) {
  const Sequence* s = sequence_of(v);
  return s && s->kind() == Sequence::Kind::generator;
}

Value last_filter(const FilterInput& in) {
  if (is_generator(in.value)) throw error_at(in.place(), "'last' needs a list, got a generator");
  List list = in.list();
  return list.empty() ? Value::undefined("last of an empty sequence") : std::move(list.back());
}

Value random_filter(const FilterInput& in) {
  if (is_generator(in.value)) throw error_at(in.place(), "'random' needs a list, got a generator");
  const List list = in.list();
  if (list.empty()) return Value::undefined("random of an empty sequence");
  static thread_local std::mt19937_64 source{std::random_device{}()};
  return list[source() % list.size()];
}

Value length_filter(const FilterInput& in) { return Value(length(in.value, in.place())); }

}  // namespace

const FilterTable& list_filters() {
  using In = FilterInput;
  static const FilterTable table = {
      {"batch", batch},
      {"count", length_filter},
      {"dictsort", dictsort},
      {"first", first_filter},
      {"groupby", groupby},
      {"items", [](const In& in) { return make_generator(items_of(in.value, in.place())); }},
      {"join", join_filter},
      {"last", last_filter},
      {"length", length_filter},
      {"list", [](const In& in) { return Value(in.list()); }},
      {"map", map_filter},
      {"max", [](const In& in) { return extreme(in, 1); }},
      {"min", [](const In& in) { return extreme(in, -1); }},
      {"random", random_filter},
      {"reject", [](const In& in) { return pick(in, false, false); }},
      {"rejectattr", [](const In& in) { return pick(in, true, false); }},
      {"reverse", reverse_filter},
      {"select", [](const In& in) { return pick(in, false, true); }},
      {"selectattr", [](const In& in) { return pick(in, true, true); }},
      {"slice", slice_filter},
      {"sort", sort_filter},
      {"sum", sum_filter},
      {"unique", unique_filter},
  };
  return table;
}

}  // namespace rlx::text::jinja
