// JSON schemas (draft 7 to 2020-12) as grammars of the JSON texts they allow.
//
// Members stand in the order of `properties`, then further ones; white space is what one-line and indented JSON has. Numbers
// are written with at most 16 digits before and after the point, and exponents of two digits, so that they fit a double.
// A keyword that restricts values and is not understood, or a combination of keywords that a grammar cannot express, is
// refused by name.
#pragma once

#include "rlx/base/json.h"
#include "rlx/llm/grammar/expression.h"

namespace rlx::llm {

/// Rules for one document; `$ref` points into it.
RuleSet json_schema_rules(JsonView schema);

}  // namespace rlx::llm
