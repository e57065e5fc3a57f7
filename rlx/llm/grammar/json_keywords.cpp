#include "rlx/llm/grammar/json_keywords.h"

#include <algorithm>
#include <cmath>

#include "rlx/base/error.h"
#include "rlx/base/json_write.h"
#include "rlx/llm/grammar/matches.h"
#include "rlx/llm/grammar/regular_expression.h"
#include "rlx/text/unicode.h"

namespace rlx::llm {

namespace {

struct TypeName {
  std::string_view name;
  unsigned type;
};
constexpr TypeName kTypeNames[] = {{"null", kNull},     {"boolean", kBoolean}, {"integer", kInteger},
                                   {"number", kNumber}, {"string", kString},   {"array", kArray},
                                   {"object", kObject}};

unsigned type_named(JsonView name) {
  for (const TypeName& t : kTypeNames)
    if (name.string() == t.name) return t.type;
  throw name.error("is '", name.string(), "'; known: null, boolean, integer, number, string, array, object");
}

unsigned both_types(unsigned a, unsigned b) {
  if (a & kNumber) a |= kInteger;
  if (b & kNumber) b |= kInteger;
  return a & b;
}

// Keywords that say nothing about values, or that alternatives() has dealt with.
constexpr std::string_view kSilent[] = {
    "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
    "deprecated", "readOnly", "writeOnly", "$ref", "allOf", "anyOf", "oneOf", "$vocabulary",
    "contentMediaType", "contentEncoding", "contentSchema", "$anchor", "$dynamicAnchor",
    // Words of OpenAPI. A value that fits without null, and one of the choices that a
    // discriminator tells apart, fit with them too.
    "nullable", "discriminator", "externalDocs", "xml", "example"};

int64_t count_of(JsonView v) {
  const int64_t n = v.integer();
  if (n < 0 || n > 1'000'000) throw v.error("is ", n, "; a number from 0 to 1000000 expected");
  return n;
}

void raise(int64_t& least, JsonView v) { least = std::max(least, count_of(v)); }
void lower(std::optional<int64_t>& most, JsonView v) {
  const int64_t n = count_of(v);
  most = most ? std::min(*most, n) : n;
}

class Collector {
 public:
  Collector(const Schemas& schemas, bool narrow) : schemas_(schemas), narrow_(narrow) {}

  Keywords collect() {
    if (!schemas_.empty()) k_.place = schemas_[0];
    for (const JsonView& s : schemas_)
      for (const auto [key, v] : s.members())
        if (!read(key, v)) throw v.error("is a keyword that is not supported");
    if (narrow_ && !typed_ && implied_ != 0 && !k_.values) k_.types = implied_;
    read_items();
    read_properties();
    return std::move(k_);
  }

 private:
  bool read(std::string_view key, const JsonView& v) {
    if (std::find(std::begin(kSilent), std::end(kSilent), key) != std::end(kSilent) || key.starts_with("x-"))
      return true;
    return read_general(key, v) || read_number(key, v) || read_string(key, v) || read_array(key, v) ||
           read_object(key, v);
  }

  bool read_general(std::string_view key, const JsonView& v) {
    if (key == "type") {
      unsigned types = 0;
      if (v.is_array()) {
        for (const JsonView& t : v.items()) types |= type_named(t);
      } else {
        types = type_named(v);
      }
      k_.types = both_types(k_.types, types);
      typed_ = true;
    } else if (key == "enum" || key == "const") {
      std::vector<JsonView> values;
      if (key == "const")
        values.push_back(v);
      else
        for (const JsonView& one : v.items()) values.push_back(one);
      if (k_.values)
        std::erase_if(values, [&](const JsonView& one) {
          return std::none_of(k_.values->begin(), k_.values->end(),
                              [&](const JsonView& old) { return old.text() == one.text(); });
        });
      k_.values = std::move(values);
    } else {
      return false;
    }
    return true;
  }

  bool read_number(std::string_view key, const JsonView& v) {
    NumberRange& r = k_.range;
    const auto at_least = [&](double bound, bool open) {
      if (!r.least || bound > *r.least || (bound == *r.least && open)) r.least = bound, r.above = open;
    };
    const auto at_most = [&](double bound, bool open) {
      if (!r.most || bound < *r.most || (bound == *r.most && open)) r.most = bound, r.below = open;
    };
    if (key == "minimum")
      at_least(v.real(), false);
    else if (key == "maximum")
      at_most(v.real(), false);
    else if (key == "exclusiveMinimum")
      at_least(v.real(), true);
    else if (key == "exclusiveMaximum")
      at_most(v.real(), true);
    else if (key == "multipleOf") {
      if (k_.multiple_of && *k_.multiple_of != v.real())
        throw v.error("differs from another multipleOf that must hold too");
      if (!(v.real() > 0)) throw v.error("must be above 0");
      k_.multiple_of = v.real();
      k_.multiple_place = v;
    } else {
      return false;
    }
    implied_ |= kNumber;
    return true;
  }

  bool read_string(std::string_view key, const JsonView& v) {
    const auto once = [&](std::optional<JsonView>& place) {
      if (place && place->string() != v.string())
        throw v.error("differs from another ", key, " that must hold too");
      place = v;
    };
    if (key == "minLength")
      raise(k_.least_length, v);
    else if (key == "maxLength")
      lower(k_.most_length, v);
    else if (key == "pattern")
      once(k_.pattern);
    else if (key == "format")
      once(k_.format);
    else
      return false;
    implied_ |= kString;
    return true;
  }

  bool read_array(std::string_view key, const JsonView& v) {
    if (key == "minItems")
      raise(k_.least_items, v);
    else if (key == "maxItems")
      lower(k_.most_items, v);
    else if (key == "uniqueItems") {
      if (v.boolean()) k_.unique = true, k_.unique_place = v;
    } else if (key != "items" && key != "prefixItems" && key != "additionalItems") {
      return false;
    }
    implied_ |= kArray;
    return true;
  }

  bool read_object(std::string_view key, const JsonView& v) {
    if (key == "minProperties")
      raise(k_.least_members, v);
    else if (key == "maxProperties")
      lower(k_.most_members, v);
    else if (key == "propertyNames") {
      if (!k_.further_names) k_.further_names.emplace();
      k_.further_names->push_back(v);
    } else if (key != "properties" && key != "required" && key != "additionalProperties" &&
               key != "patternProperties" && key != "unevaluatedProperties") {
      return false;
    }
    implied_ |= kObject;
    return true;
  }

  static std::optional<JsonView> prefix_of(const JsonView& s) {
    if (const auto prefix = s.find("prefixItems")) return prefix;
    if (const auto items = s.find("items"); items && items->is_array()) return items;  // draft 7
    return {};
  }
  static std::optional<JsonView> items_of(const JsonView& s) {
    const auto items = s.find("items");
    if (items && !items->is_array()) return items;
    return s.find("additionalItems");
  }

  // Element i must fit what each schema says about it: its prefix, or its items.
  void read_items() {
    size_t longest = 0;
    for (const JsonView& s : schemas_)
      if (const auto prefix = prefix_of(s)) longest = std::max(longest, prefix->size());
    k_.prefix.resize(longest);
    for (const JsonView& s : schemas_) {
      const auto prefix = prefix_of(s), items = items_of(s);
      for (size_t i = 0; i < longest; ++i) {
        if (prefix && i < prefix->size())
          k_.prefix[i].push_back(prefix->at(i));
        else if (items)
          k_.prefix[i].push_back(*items);
      }
      if (!items) continue;
      if (items->kind() == JsonKind::boolean && !items->boolean()) k_.items_closed = true;
      k_.items.push_back(*items);
    }
  }

  struct Members {
    std::optional<JsonView> properties, patterns, further;
  };
  static Members members_of(const JsonView& s) {
    auto further = s.find("additionalProperties");
    if (!further) further = s.find("unevaluatedProperties");
    return {s.find("properties"), s.find("patternProperties"), further};
  }

  void add_property(std::string_view name, bool required) {
    for (Property& p : k_.properties)
      if (p.name == name) {
        p.required |= required;
        return;
      }
    k_.properties.push_back({std::string(name), {}, required});
  }

  // A member must fit what each schema says about its name: a property, patterns, or else the further ones.
  void read_properties() {
    for (const JsonView& s : schemas_)
      if (const auto properties = s.find("properties"))
        for (const auto [name, v] : properties->members()) add_property(name, false);
    for (const JsonView& s : schemas_)
      if (const auto required = s.find("required"))
        for (const JsonView& name : required->items()) add_property(name.string(), true);
    for (const JsonView& s : schemas_) {
      const Members m = members_of(s);
      for (Property& p : k_.properties) {
        bool known = false;
        if (m.properties)
          for (const auto [name, v] : m.properties->members())
            if (name == p.name) p.schemas.push_back(v), known = true;
        if (m.patterns)
          for (const auto [pattern, v] : m.patterns->members())
            if (matches_part(pattern, p.name)) p.schemas.push_back(v), known = true;
        if (!known && m.further) p.schemas.push_back(*m.further);
      }
      if (m.patterns && m.patterns->size() > 0)
        read_patterns(*m.patterns);
      else if (m.further)
        close_or_add(*m.further);
    }
    // A property that must not be there is left out, and no further member takes its name.
    std::erase_if(k_.properties, [&](const Property& p) {
      const bool out = !p.required && std::any_of(p.schemas.begin(), p.schemas.end(), [](const JsonView& s) {
        return s.kind() == JsonKind::boolean && !s.boolean();
      });
      if (out) k_.refused.push_back(p.name);
      return out;
    });
  }

  void close_or_add(const JsonView& further) {
    if (further.kind() == JsonKind::boolean && !further.boolean()) k_.further_closed = true;
    k_.further.push_back(further);
  }

  // Further members take names of the pattern. With several patterns a name might fit two, and one that fits a property is
  // taken: then there are none, which the schema allows.
  void read_patterns(const JsonView& patterns) {
    const JsonMember first = *patterns.members().begin();
    if (patterns.size() > 1 || k_.further_names || !k_.properties.empty()) {
      k_.further_closed = true;
      return;
    }
    k_.further.push_back(first.value);
    k_.further_names.emplace();
    k_.made = Json::parse("{\"type\":\"string\",\"pattern\":" + json_quote(first.key) + "}",
                          cat("names of ", first.value.place()));
    k_.further_names->push_back(k_.made);
  }

  const Schemas& schemas_;
  bool narrow_;
  Keywords k_;
  bool typed_ = false;
  unsigned implied_ = 0;
};

}  // namespace

Keywords collect_keywords(const Schemas& schemas, bool narrow) {
  return Collector(schemas, narrow).collect();
}

bool allows(const Keywords& k, JsonView v) {
  if (k.values && std::none_of(k.values->begin(), k.values->end(),
                               [&](const JsonView& w) { return v.text() == w.text(); }))
    return false;
  switch (v.kind()) {
    case JsonKind::null:
      return k.types & kNull;
    case JsonKind::boolean:
      return k.types & kBoolean;
    case JsonKind::array:
      return k.types & kArray;
    case JsonKind::object:
      return k.types & kObject;
    case JsonKind::integer:
    case JsonKind::real: {
      const double x = v.real();
      const bool whole = std::floor(x) == x;
      if (!(k.types & kNumber) && !(whole && (k.types & kInteger))) return false;
      const NumberRange& r = k.range;
      if (r.least && (x < *r.least || (x == *r.least && r.above))) return false;
      if (r.most && (x > *r.most || (x == *r.most && r.below))) return false;
      if (!k.multiple_of) return true;
      const double times = x / *k.multiple_of;
      return std::fabs(times - std::round(times)) <= 1e-9 * std::max(1.0, std::fabs(times));
    }
    case JsonKind::string:
      break;
  }
  if (!(k.types & kString)) return false;
  const auto length = int64_t(text::count_characters(v.string()));
  if (length < k.least_length || (k.most_length && length > *k.most_length)) return false;
  if (k.pattern && !matches_part(k.pattern->string(), v.string())) return false;
  return !k.format || !json_format(k.format->string()) ||
         matches(json_format(k.format->string()), v.string());
}

}  // namespace rlx::llm
