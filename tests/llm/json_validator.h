// Schemas, and whether a value keeps to one: the judge of texts that grammars of schemas let through.
#pragma once

#include <cmath>
#include <regex>

#include "rlx/base/json.h"
#include "rlx/text/unicode.h"

namespace rlx::test {

// The rules of JSON schema for values, written down a second time and directly.
class Validator {
 public:
  explicit Validator(JsonView document) : document_(document) {}

  bool valid(JsonView s, JsonView v) const {
    if (s.kind() == JsonKind::boolean) return s.boolean();
    for (const auto [key, rule] : s.members())
      if (!holds(s, std::string(key), rule, v)) return false;
    return true;
  }

 private:
  static bool has_type(std::string_view type, JsonView v) {
    switch (v.kind()) {
      case JsonKind::null:
        return type == "null";
      case JsonKind::boolean:
        return type == "boolean";
      case JsonKind::integer:
        return type == "integer" || type == "number";
      case JsonKind::real:
        return type == "number" || (type == "integer" && std::floor(v.real()) == v.real());
      case JsonKind::string:
        return type == "string";
      case JsonKind::array:
        return type == "array";
      case JsonKind::object:
        return type == "object";
    }
    return false;
  }

  bool holds(JsonView s, const std::string& key, JsonView rule, JsonView v) const {
    if (key == "type") {
      if (!rule.is_array()) return has_type(rule.string(), v);
      for (const JsonView& t : rule.items())
        if (has_type(t.string(), v)) return true;
      return false;
    }
    if (key == "enum") {
      for (const JsonView& one : rule.items())
        if (one.text() == v.text()) return true;
      return false;
    }
    if (key == "const") return rule.text() == v.text();
    if (key == "$ref") return valid(target(rule.string()), v);
    if (key == "allOf" || key == "anyOf" || key == "oneOf") {
      int fitting = 0, all = 0;
      for (const JsonView& one : rule.items()) fitting += valid(one, v), ++all;
      return key == "allOf" ? fitting == all : key == "anyOf" ? fitting > 0 : fitting == 1;
    }
    if (v.is_number()) return holds_number(key, rule, v.real());
    if (v.is_string()) return holds_string(key, rule, std::string(v.string()));
    if (v.is_array()) return holds_array(s, key, rule, v);
    return !v.is_object() || holds_object(s, key, rule, v);
  }

  static bool holds_number(const std::string& key, JsonView rule, double x) {
    if (key == "minimum") return x >= rule.real();
    if (key == "maximum") return x <= rule.real();
    if (key == "exclusiveMinimum") return x > rule.real();
    if (key == "exclusiveMaximum") return x < rule.real();
    if (key == "multipleOf")
      return std::fabs(std::remainder(x, rule.real())) < 1e-9 * std::max(1.0, std::fabs(x));
    return true;
  }
  static bool holds_string(const std::string& key, JsonView rule, const std::string& x) {
    if (key == "minLength") return int64_t(text::count_characters(x)) >= rule.integer();
    if (key == "maxLength") return int64_t(text::count_characters(x)) <= rule.integer();
    if (key == "pattern") return std::regex_search(x, std::regex(std::string(rule.string())));
    return true;
  }
  bool holds_array(JsonView s, const std::string& key, JsonView rule, JsonView v) const {
    if (key == "minItems") return int64_t(v.size()) >= rule.integer();
    if (key == "maxItems") return int64_t(v.size()) <= rule.integer();
    const size_t prefix = s.find("prefixItems") ? s.find("prefixItems")->size() : 0;
    size_t i = 0;
    for (const JsonView& item : v.items()) {
      if (key == "prefixItems" && i < prefix && !valid(rule.at(i), item)) return false;
      if (key == "items" && i >= prefix && !valid(rule, item)) return false;
      ++i;
    }
    return true;
  }
  bool holds_object(JsonView s, const std::string& key, JsonView rule, JsonView v) const {
    if (key == "minProperties") return int64_t(v.size()) >= rule.integer();
    if (key == "maxProperties") return int64_t(v.size()) <= rule.integer();
    if (key == "required")
      for (const JsonView& name : rule.items()) {
        bool there = false;
        for (const auto [k, x] : v.members()) there |= k == name.string();
        if (!there) return false;
      }
    for (const auto [name, x] : v.members()) {
      std::optional<JsonView> property;
      if (const auto properties = s.find("properties")) property = properties->find(name);
      bool patterned = false;
      if (const auto patterns = s.find("patternProperties"))
        for (const auto [pattern, schema] : patterns->members())
          if (std::regex_search(std::string(name), std::regex(std::string(pattern)))) {
            patterned = true;
            if (key == "patternProperties" && !valid(schema, x)) return false;
          }
      if (key == "properties" && property && !valid(*property, x)) return false;
      if (key == "additionalProperties" && !property && !patterned && !valid(rule, x)) return false;
      if (key == "propertyNames" && !valid(rule, Json::parse("\"" + std::string(name) + "\"", "name")))
        return false;
    }
    return true;
  }

  JsonView target(std::string_view reference) const {
    JsonView at = document_;
    for (size_t i = 2; i <= reference.size() && reference.size() > 1;) {
      const size_t end = std::min(reference.find('/', i), reference.size());
      at = at.at(reference.substr(i, end - i));
      i = end + 1;
    }
    return at;
  }

  JsonView document_;
};

inline const char* const kSchemas[] = {
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},
        "tags":{"type":"array","items":{"type":"string","maxLength":5},"maxItems":3}},"required":["name","age"],
        "additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"type":"number","minimum":-2.5,"exclusiveMaximum":3.75},"b":{"enum":["x",1,null,[1,2]]}},
        "required":["b","c"],"additionalProperties":{"type":"boolean"}})",
    R"({"$defs":{"tree":{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}},
        "required":["value"],"additionalProperties":false}},"$ref":"#/$defs/tree"})",
    R"({"anyOf":[{"type":"string","pattern":"^[A-Z]{2,4}-\\d+$"},{"type":"integer","multipleOf":7},{"type":"null"}]})",
    R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string","minLength":2,"maxLength":4}],"items":{"type":"boolean"},
        "minItems":1,"maxItems":5})",
    R"({"allOf":[{"type":"object","properties":{"x":{"type":"integer","minimum":5}},"required":["x"]},
        {"properties":{"x":{"maximum":12},"y":{"const":"a\"b"}},"required":["y"]}]})",
    R"({"oneOf":[{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number","minimum":0}},"required":["kind","r"],"additionalProperties":false},
        {"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number","minimum":0.5}},"required":["kind","side"],"additionalProperties":false}]})",
    R"({"type":["string","null"],"maxLength":8})",
    R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":3})",
    R"({"type":"object","patternProperties":{"^s_[a-z]+$":{"type":"string","maxLength":3}},"additionalProperties":false})",
    R"({"type":"object","propertyNames":{"pattern":"^[a-z]{1,3}$"},"additionalProperties":{"type":"null"}})",
    R"({"type":"integer","exclusiveMinimum":-120,"exclusiveMaximum":-7})",
    R"({"type":"number","minimum":0.001,"maximum":0.5})",
    R"({"type":"number","multipleOf":0.01,"minimum":0,"maximum":20})",
    R"({})",
    R"({"type":"string","pattern":"[\\n\"]x"})",
    R"({"type":"string","pattern":"^[a-z]+$","minLength":3,"maxLength":6})",
};

}  // namespace rlx::test
