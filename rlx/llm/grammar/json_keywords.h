// Schemas taken apart: references followed, choices spread out, keywords that must hold together joined.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/base/json.h"
#include "rlx/llm/grammar/expression.h"
#include "rlx/llm/grammar/json_text.h"

namespace rlx::llm {

/// Schemas that must all hold; none: any value.
using Schemas = std::vector<JsonView>;

enum JsonType : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,  // integers too
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127,
};

struct Property {
  std::string name;
  Schemas schemas;
  bool required = false;
};

/// What schemas without references and choices ask for together.
struct Keywords {
  JsonView place;  // one of them, for messages
  unsigned types = kAnyType;
  std::optional<std::vector<JsonView>> values;  // of enum and const
  // numbers
  NumberRange range;
  std::optional<double> multiple_of;
  JsonView multiple_place;
  // strings
  int64_t least_length = 0;
  std::optional<int64_t> most_length;
  std::optional<JsonView> pattern, format;
  // arrays
  std::vector<Schemas> prefix;
  Schemas items;
  bool items_closed = false;  // none behind the prefix
  int64_t least_items = 0;
  std::optional<int64_t> most_items;
  bool unique = false;
  JsonView unique_place;
  // objects
  std::vector<Property> properties;  // in the order to write them
  std::vector<std::string> refused;  // names of members that must not be there
  Schemas further;                   // of members without a property
  bool further_closed = false;
  std::optional<Schemas> further_names;
  Json made;  // a schema of names that a pattern stands for
  int64_t least_members = 0;
  std::optional<int64_t> most_members;
};

/// The lists of schemas that `schemas` mean, one for each choice: what they hold is plain keywords. No list: no value is allowed.
std::vector<Schemas> alternatives(JsonView document, const Schemas& schemas);

/// Joins plain schemas. A keyword that is not known is a user error. Keywords of one type let every value of another pass; where no
/// type is told, texts are of theirs alone (`narrow`).
Keywords collect_keywords(const Schemas&, bool narrow = true);

/// Whether a value keeps to keywords; of arrays and objects to their type alone.
bool allows(const Keywords&, JsonView value);

/// What stands between the quotes of a string.
ExpressionPtr string_inside(const Keywords&);

}  // namespace rlx::llm
