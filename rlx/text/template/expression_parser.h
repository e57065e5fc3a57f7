// Expressions of a template, loosest first: conditional, or, and, not, comparison, ~, + -, * / // %, unary,
// **, then filters, calls and subscripts of a primary.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rlx/text/template/ast.h"
#include "rlx/text/template/token_cursor.h"

namespace rlx::text::jinja {

class ExpressionParser : protected TokenCursor {
 public:
  using TokenCursor::TokenCursor;

 protected:
  /// The names with a meaning inside macros that were read since the marks were cleared.
  struct NameMarks {
    bool varargs = false, kwargs = false, caller = false;
  };
  NameMarks marks_;

  /// One expression, or several separated by commas.
  ExprPtr tuple(bool conditional = true);
  ExprPtr expression();
  /// | filter(...) and is test, as often as they come. `bare` begins with a filter that has no bar before it.
  ExprPtr filters(ExprPtr e, bool bare = false);
  ExprPtr empty_name() const;

 private:
  ExprPtr node(ExprKind kind, Place place) const;
  ExprPtr node(ExprKind kind, Place place, ExprPtr a, ExprPtr b = nullptr) const;
  ExprPtr literal(Place place, Value value) const;
  template <class Next, class Step>
  ExprPtr chain(Next next, Step step);
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr comparison();
  ExprPtr binary(ExprPtr (ExpressionParser::*next)(), std::span<const std::string_view> ops);
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr filtered_unary();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr name_or_constant(const Token& t);
  ExprPtr parenthesis(Place place);
  ExprPtr list(Place place);
  ExprPtr dict(Place place);
  ExprPtr postfix(ExprPtr e);
  ExprPtr subscript(ExprPtr object, Place place);
  void arguments(Expr& e);
  std::string dotted_name(std::string_view what);
  ExprPtr test(ExprPtr e, Place place);
  bool begins_test_argument() const;
};

}  // namespace rlx::text::jinja
