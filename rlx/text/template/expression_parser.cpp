#include "rlx/text/template/expression_parser.h"

#include <charconv>

namespace rlx::text::jinja {

constexpr int kMaxHeight = 400;  // of an expression tree

ExprPtr ExpressionParser::node(ExprKind kind, Place place) const {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->place = place;
  return e;
}

ExprPtr ExpressionParser::node(ExprKind kind, Place place, ExprPtr a, ExprPtr b) const {
  ExprPtr e = node(kind, place);
  e->add(std::move(a));
  if (b) e->add(std::move(b));
  return e;
}

ExprPtr ExpressionParser::literal(Place place, Value value) const {
  ExprPtr e = node(ExprKind::literal, place);
  e->value = std::move(value);
  return e;
}

ExprPtr ExpressionParser::empty_name() const { return node(ExprKind::name, now().place); }

ExprPtr ExpressionParser::tuple(bool conditional) {
  const Place place = now().place;
  ExprPtr first = conditional ? expression() : logical_or();
  if (!is_op(",")) return first;
  ExprPtr list = node(ExprKind::tuple, place, std::move(first));
  while (skip_op(",")) {
    if (now().kind == Tok::block_end || now().kind == Tok::output_end || is_op(")")) break;
    list->add(conditional ? expression() : logical_or());
  }
  return list;
}

ExprPtr ExpressionParser::expression() {
  const Deeper deeper(*this, now().place);
  const Place place = now().place;
  ExprPtr e = logical_or();
  while (skip_name("if")) {
    ExprPtr choice = node(ExprKind::conditional, place);
    choice->add(logical_or());
    choice->add(std::move(e));
    choice->add(skip_name("else") ? expression() : nullptr);
    e = std::move(choice);
  }
  return e;
}

// next() and then step(e) for as long as it extends e. Recursion does not bound such a chain, so its height
// is checked here.
template <class Next, class Step>
ExprPtr ExpressionParser::chain(Next next, Step step) {
  ExprPtr e = next();
  while (step(e)) {
    if (e->height > kMaxHeight)
      throw error_at(now().place, cat("an expression of more than ", kMaxHeight, " levels"));
  }
  return e;
}

ExprPtr ExpressionParser::logical_or() {
  return chain([&] { return logical_and(); },
               [&](ExprPtr& e) {
                 const Place place = now().place;
                 if (!skip_name("or")) return false;
                 e = node(ExprKind::logical_or, place, std::move(e), logical_and());
                 return true;
               });
}

ExprPtr ExpressionParser::logical_and() {
  return chain([&] { return logical_not(); },
               [&](ExprPtr& e) {
                 const Place place = now().place;
                 if (!skip_name("and")) return false;
                 e = node(ExprKind::logical_and, place, std::move(e), logical_not());
                 return true;
               });
}

ExprPtr ExpressionParser::logical_not() {
  const Place place = now().place;
  if (!is_name("not")) return comparison();
  const Deeper deeper(*this, place);
  take();
  return node(ExprKind::logical_not, place, logical_not());
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr first = sum();
  ExprPtr e;
  for (;;) {
    std::string op;
    const Place place = now().place;
    constexpr std::string_view kOps[] = {"==", "!=", "<", ">", "<=", ">="};
    if (now().kind == Tok::op && std::find(std::begin(kOps), std::end(kOps), now().text) != std::end(kOps)) {
      op = take().text;
    } else if (is_name("in")) {
      op = take().text;
    } else if (is_name("not") && after().kind == Tok::name && after().text == "in") {
      take();
      take();
      op = "not in";
    } else {
      return e ? std::move(e) : std::move(first);
    }
    if (!e) e = node(ExprKind::compare, place, std::move(first));
    e->ops.push_back(op);
    e->add(sum());
  }
}

ExprPtr ExpressionParser::binary(ExprPtr (ExpressionParser::*next)(), std::span<const std::string_view> ops) {
  return chain([&] { return (this->*next)(); },
               [&](ExprPtr& e) {
                 if (now().kind != Tok::op || std::find(ops.begin(), ops.end(), now().text) == ops.end())
                   return false;
                 const Token op = take();
                 e = node(ExprKind::binary, op.place, std::move(e), (this->*next)());
                 e->text = op.text;
                 return true;
               });
}

ExprPtr ExpressionParser::sum() {
  constexpr std::string_view kOps[] = {"+", "-"};
  return binary(&ExpressionParser::concatenation, kOps);
}

ExprPtr ExpressionParser::concatenation() {
  constexpr std::string_view kOps[] = {"~"};
  return binary(&ExpressionParser::product, kOps);
}

ExprPtr ExpressionParser::product() {
  constexpr std::string_view kOps[] = {"*", "/", "//", "%"};
  return binary(&ExpressionParser::power, kOps);
}

ExprPtr ExpressionParser::power() {
  constexpr std::string_view kOps[] = {"**"};
  return binary(&ExpressionParser::filtered_unary, kOps);
}

ExprPtr ExpressionParser::filtered_unary() { return unary(true); }

ExprPtr ExpressionParser::unary(bool with_filters) {
  const Deeper deeper(*this, now().place);
  const Place place = now().place;
  ExprPtr e;
  if (skip_op("-")) {
    e = node(ExprKind::negate, place, unary(false));
  } else if (skip_op("+")) {
    e = node(ExprKind::positive, place, unary(false));
  } else {
    e = primary();
  }
  e = postfix(std::move(e));
  return with_filters ? filters(std::move(e)) : std::move(e);
}

ExprPtr ExpressionParser::primary() {
  const Token t = take();
  switch (t.kind) {
    case Tok::name:
      return name_or_constant(t);
    case Tok::string: {
      std::string text = t.text;
      while (now().kind == Tok::string) text += take().text;
      return literal(t.place, Value(std::move(text)));
    }
    case Tok::integer: {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
      if (error != std::errc()) throw error_at(t.place, cat("the number ", t.text, " is too large"));
      return literal(t.place, Value(value));
    }
    case Tok::number: {
      double value = 0;
      const auto [end, error] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
      if (error != std::errc()) throw error_at(t.place, cat("the number ", t.text, " is out of range"));
      return literal(t.place, Value(value));
    }
    case Tok::op:
      if (t.text == "(") return parenthesis(t.place);
      if (t.text == "[") return list(t.place);
      if (t.text == "{") return dict(t.place);
      break;
    default:
      break;
  }
  throw error_at(t.place, cat("expected an expression, found ", found(t)));
}

ExprPtr ExpressionParser::name_or_constant(const Token& t) {
  if (t.text == "true" || t.text == "True") return literal(t.place, Value(true));
  if (t.text == "false" || t.text == "False") return literal(t.place, Value(false));
  if (t.text == "none" || t.text == "None") return literal(t.place, Value());
  marks_.varargs |= t.text == "varargs";
  marks_.kwargs |= t.text == "kwargs";
  marks_.caller |= t.text == "caller";
  ExprPtr e = node(ExprKind::name, t.place);
  e->text = t.text;
  return e;
}

ExprPtr ExpressionParser::parenthesis(Place place) {
  if (skip_op(")")) return node(ExprKind::tuple, place);
  ExprPtr e = tuple();
  expect_op(")");
  return e;
}

ExprPtr ExpressionParser::list(Place place) {
  ExprPtr e = node(ExprKind::list, place);
  while (!is_op("]")) {
    e->add(expression());
    if (!skip_op(",")) break;
  }
  expect_op("]");
  return e;
}

ExprPtr ExpressionParser::dict(Place place) {
  ExprPtr e = node(ExprKind::dict, place);
  while (!is_op("}")) {
    e->add(expression());
    expect_op(":");
    e->add(expression());
    if (!skip_op(",")) break;
  }
  expect_op("}");
  return e;
}

ExprPtr ExpressionParser::postfix(ExprPtr e) {
  return chain([&] { return std::move(e); },
               [&](ExprPtr& x) {
                 const Place place = now().place;
                 if (is_op(".") && after().kind == Tok::integer) {
                   take();
                   ExprPtr index = primary();
                   x = node(ExprKind::subscript, place, std::move(x), std::move(index));
                 } else if (skip_op(".")) {
                   x = node(ExprKind::attribute, place, std::move(x));
                   x->text = expect_name("an attribute name");
                 } else if (skip_op("[")) {
                   x = subscript(std::move(x), place);
                 } else if (is_op("(")) {
                   x = node(ExprKind::call, place, std::move(x));
                   arguments(*x);
                 } else {
                   return false;
                 }
                 return true;
               });
}

ExprPtr ExpressionParser::subscript(ExprPtr object, Place place) {
  ExprPtr first = is_op(":") ? nullptr : tuple();
  if (!is_op(":")) {
    expect_op("]");
    return node(ExprKind::subscript, place, std::move(object), std::move(first));
  }
  ExprPtr e = node(ExprKind::slice, place, std::move(object));
  e->add(std::move(first));
  for (int i = 0; i < 2; ++i) {
    const bool more = skip_op(":");
    e->add(more && !is_op(":") && !is_op("]") ? expression() : nullptr);
  }
  expect_op("]");
  return e;
}

void ExpressionParser::arguments(Expr& e) {
  expect_op("(");
  while (!is_op(")")) {
    Argument a;
    if (skip_op("*")) {
      a.spread = Argument::Spread::list;
    } else if (skip_op("**")) {
      a.spread = Argument::Spread::dict;
    } else if (now().kind == Tok::name && after().kind == Tok::op && after().text == "=") {
      a.name = take().text;
      take();
    } else if (!e.arguments.empty() && !e.arguments.back().name.empty()) {
      throw error_at(now().place, "an argument by position after one by name");
    }
    a.value = expression();
    e.add(std::move(a));
    if (!skip_op(",")) break;
  }
  expect_op(")");
}

std::string ExpressionParser::dotted_name(std::string_view what) {
  std::string name = expect_name(what);
  while (skip_op(".")) name.append(".").append(expect_name(what));
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr e, bool bare) {
  return chain([&] { return std::move(e); },
               [&](ExprPtr& x) {
                 const Place place = now().place;
                 if (bare || skip_op("|")) {
                   bare = false;
                   x = node(ExprKind::filter, place, std::move(x));
                   x->text = dotted_name("a filter name");
                   if (is_op("(")) arguments(*x);
                 } else if (is_name("is")) {
                   take();
                   x = test(std::move(x), place);
                 } else {
                   return false;
                 }
                 return true;
               });
}

ExprPtr ExpressionParser::test(ExprPtr e, Place place) {
  const bool negated = skip_name("not");
  ExprPtr t = node(ExprKind::test, place, std::move(e));
  t->text = dotted_name("a test name");
  if (is_op("(")) {
    arguments(*t);
  } else if (begins_test_argument()) {
    t->add(Argument{"", postfix(primary())});
  }
  return negated ? node(ExprKind::logical_not, place, std::move(t)) : std::move(t);
}

bool ExpressionParser::begins_test_argument() const {
  switch (now().kind) {
    case Tok::name:
      return now().text != "else" && now().text != "or" && now().text != "and" && now().text != "is" &&
             now().text != "if" && now().text != "in" && now().text != "not";
    case Tok::string:
    case Tok::integer:
    case Tok::number:
      return true;
    case Tok::op:
      return now().text == "[" || now().text == "{";
    default:
      return false;
  }
}
}  // namespace rlx::text::jinja
