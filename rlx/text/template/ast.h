// The syntax tree of a template. Every node knows where it began.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/text/value.h"

namespace rlx::text::jinja {

struct Place {
  int line = 1, column = 1;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Argument {
  std::string name;  // empty: by position
  ExprPtr value;
  enum class Spread { none, list, dict } spread = Spread::none;  // *value, **value
};

enum class ExprKind {
  literal,      // value
  name,         // text
  list,         // parts
  tuple,        // parts
  dict,         // parts: key, value, key, value, ...
  attribute,    // parts[0] . text
  subscript,    // parts[0] [ parts[1] ]
  slice,        // parts[0] [ parts[1] : parts[2] : parts[3] ], absent ones null
  call,         // parts[0] ( arguments )
  filter,       // parts[0] | text ( arguments )
  test,         // parts[0] is text ( arguments )
  negate,       // - parts[0]
  positive,     // + parts[0]
  logical_not,  // not parts[0]
  logical_and,
  logical_or,
  binary,       // parts[0] op parts[1]; text is the operator
  compare,      // parts[0] ops[0] parts[1] ops[1] ...
  conditional,  // parts[1] if parts[0] else parts[2]; parts[2] may be null
};

struct Expr {
  ExprKind kind;
  Place place;
  std::string text;
  Value value;
  std::vector<ExprPtr> parts;
  std::vector<std::string> ops;
  std::vector<Argument> arguments;
  int height = 1;  // of the tree below; the parser keeps it small enough for recursion

  void add(ExprPtr part) {
    if (part) height = std::max(height, part->height + 1);
    parts.push_back(std::move(part));
  }
  void add(Argument argument) {
    height = std::max(height, argument.value->height + 1);
    arguments.push_back(std::move(argument));
  }
};

struct Stmt;
using Block = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind {
  text,     // text
  output,   // expr
  choose,   // if / elif / else: conditions[i] with bodies[i], a body more than conditions is the else
  loop,     // for target in expr [if condition] [recursive]: bodies[0], else bodies[1]
  assign,   // set target = expr, or set target.attribute = expr
  capture,  // set target %} bodies[0] {% endset, through filters in expr (applied to a name "")
  macro,    // text, parameters, bodies[0]
  call,     // call(parameters) expr %} bodies[0]
  filter,   // filter chain in expr (applied to a name ""), bodies[0]
  scope,    // with a = x, ...: names and conditions, bodies[0]
  break_,
  continue_,
};

struct Parameter {
  std::string name;
  ExprPtr otherwise;  // null: none
};

/// What is assigned to: a name, or the parts that a value is unpacked into.
struct Target {
  std::string name;  // empty where there are parts
  std::vector<Target> parts;
};

struct Stmt {
  StmtKind kind;
  Place place;
  std::string text;
  Target target;                   // loop, assign, capture
  std::vector<std::string> names;  // scope
  std::string attribute;
  ExprPtr expr, condition;
  std::vector<ExprPtr> conditions;
  std::vector<Parameter> parameters;
  std::vector<Block> bodies;
  bool recursive = false;                          // loop
  bool uses_varargs = false, uses_kwargs = false;  // macro, call: what its body names
  bool uses_caller = false;
};

}  // namespace rlx::text::jinja
