#include "rlx/text/template/parser.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "rlx/text/template/lexer.h"

namespace rlx::text::jinja {

namespace {

constexpr int kMaxDepth = 100;   // of nested expressions and blocks
constexpr int kMaxHeight = 400;  // of an expression tree

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block run() {
    Block block = body({});
    if (now().kind != Tok::end) throw error_at(now().place, cat("unexpected '", now().text, "'"));
    return block;
  }

 private:
  // Guards the recursion of the parser and, because trees are built by it, that of the evaluator.
  struct Deeper {
    Deeper(Parser& p, Place place) : parser(p) {
      if (++parser.depth_ > kMaxDepth)
        throw error_at(place, cat("nested deeper than ", kMaxDepth, " levels"));
    }
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_op(std::string_view op) const { return now().kind == Tok::op && now().text == op; }
  bool is_name(std::string_view name) const { return now().kind == Tok::name && now().text == name; }
  bool skip_op(std::string_view op) { return is_op(op) && (take(), true); }
  bool skip_name(std::string_view name) { return is_name(name) && (take(), true); }
  std::string found() const {
    switch (now().kind) {
      case Tok::end:
        return "the end of the template";
      case Tok::block_end:
        return "'%}'";
      case Tok::output_end:
        return "'}}'";
      case Tok::string:
        return cat("the string '", now().text, "'");
      default:
        return cat("'", now().text, "'");
    }
  }
  void expect_op(std::string_view op) {
    if (!skip_op(op)) throw error_at(now().place, cat("expected '", op, "', found ", found()));
  }
  void expect(Tok kind, std::string_view what) {
    if (now().kind != kind) throw error_at(now().place, cat("expected ", what, ", found ", found()));
    take();
  }
  std::string expect_name(std::string_view what) {
    if (now().kind != Tok::name) throw error_at(now().place, cat("expected ", what, ", found ", found()));
    return take().text;
  }

  // Statements.

  // Everything up to a block tag that begins with one of `ends`, which is left to the caller.
  Block body(std::span<const std::string_view> ends) {
    const Deeper deeper(*this, now().place);
    Block block;
    while (now().kind != Tok::end) {
      if (now().kind == Tok::data) {
        auto s = make(StmtKind::text);
        s->text = take().text;
        block.push_back(std::move(s));
      } else if (now().kind == Tok::output_begin) {
        auto s = make(StmtKind::output);
        take();
        s->expr = tuple();
        expect(Tok::output_end, "'}}'");
        block.push_back(std::move(s));
      } else {
        if (after().kind == Tok::name && std::find(ends.begin(), ends.end(), after().text) != ends.end())
          return block;
        take();
        statement(block);
      }
    }
    if (!ends.empty())
      throw error_at(now().place, cat("the template ends; expected '{% ", ends.back(), " %}'"));
    return block;
  }
  Block body_until(std::string_view end) {
    const std::string_view ends[] = {end};
    Block block = body(ends);
    take();
    take();
    return block;
  }

  std::unique_ptr<Stmt> make(StmtKind kind) const {
    auto s = std::make_unique<Stmt>();
    s->kind = kind;
    s->place = now().place;
    return s;
  }
  void end_tag() { expect(Tok::block_end, "'%}'"); }

  void statement(Block& block) {
    const Place place = now().place;
    const std::string word = expect_name("a statement");
    if (word == "if") return block.push_back(if_statement(place));
    if (word == "for") return block.push_back(for_statement(place));
    if (word == "set") return block.push_back(set_statement(place));
    if (word == "macro") return block.push_back(macro_statement(place));
    if (word == "call") return block.push_back(call_statement(place));
    if (word == "filter") return block.push_back(filter_statement(place));
    if (word == "with") return block.push_back(with_statement(place));
    if (word == "break" || word == "continue") {
      if (loops_ == 0) throw error_at(place, cat("'", word, "' outside of a loop"));
      end_tag();
      auto s = make(word == "break" ? StmtKind::break_ : StmtKind::continue_);
      s->place = place;
      return block.push_back(std::move(s));
    }
    if (word == "generation") {  // marks what the model said, for training; the text is the same
      end_tag();
      Block inner = body_until("endgeneration");
      end_tag();
      std::move(inner.begin(), inner.end(), std::back_inserter(block));
      return;
    }
    throw error_at(
        place, cat("unknown statement '", word,
                   "'; known: if, for, set, macro, call, filter, with, break, continue, generation, raw"));
  }

  std::unique_ptr<Stmt> if_statement(Place place) {
    auto s = make(StmtKind::choose);
    s->place = place;
    constexpr std::string_view kEnds[] = {"elif", "else", "endif"};
    s->conditions.push_back(tuple());
    for (;;) {
      end_tag();
      s->bodies.push_back(body(kEnds));
      take();
      const Token word = take();
      if (word.text == "endif") break;
      if (s->bodies.size() > s->conditions.size())
        throw error_at(word.place, cat("'", word.text, "' after 'else'"));
      if (word.text == "elif") s->conditions.push_back(tuple());
    }
    end_tag();
    return s;
  }

  std::vector<std::string> target_names() {
    std::vector<std::string> names;
    const bool parenthesis = skip_op("(");
    do names.push_back(expect_name("a variable name"));
    while (skip_op(",") && now().kind == Tok::name);
    if (parenthesis) expect_op(")");
    return names;
  }

  std::unique_ptr<Stmt> for_statement(Place place) {
    auto s = make(StmtKind::loop);
    s->place = place;
    s->names = target_names();
    if (!skip_name("in")) throw error_at(now().place, cat("expected 'in', found ", found()));
    s->expr = tuple(false);
    if (skip_name("if")) s->condition = expression();
    if (is_name("recursive")) throw error_at(now().place, "recursive loops are not supported");
    end_tag();
    constexpr std::string_view kEnds[] = {"else", "endfor"};
    ++loops_;
    s->bodies.push_back(body(kEnds));
    --loops_;
    take();
    if (take().text == "else") {
      end_tag();
      s->bodies.push_back(body_until("endfor"));
    }
    end_tag();
    return s;
  }

  std::unique_ptr<Stmt> set_statement(Place place) {
    auto s = make(StmtKind::assign);
    s->place = place;
    s->names = target_names();
    if (s->names.size() == 1 && skip_op(".")) s->attribute = expect_name("an attribute name");
    if (skip_op("=")) {
      s->expr = tuple();
      end_tag();
      return s;
    }
    if (s->names.size() != 1 || !s->attribute.empty())
      throw error_at(now().place, cat("expected '=', found ", found()));
    s->kind = StmtKind::capture;
    if (is_op("|")) s->expr = filters(empty_name());
    end_tag();
    s->bodies.push_back(body_until("endset"));
    end_tag();
    return s;
  }

  // ( a, b = 1 )
  std::vector<Parameter> parameters() {
    std::vector<Parameter> list;
    expect_op("(");
    while (!is_op(")")) {
      Parameter p;
      p.name = expect_name("a parameter name");
      if (skip_op("=")) p.otherwise = expression();
      list.push_back(std::move(p));
      if (!skip_op(",")) break;
    }
    expect_op(")");
    return list;
  }

  std::unique_ptr<Stmt> macro_statement(Place place) {
    auto s = make(StmtKind::macro);
    s->place = place;
    s->text = expect_name("a macro name");
    s->parameters = parameters();
    end_tag();
    s->bodies.push_back(callable_body("endmacro"));
    return s;
  }

  // A macro or call body: break and continue do not reach the loop around it.
  Block callable_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block block = body_until(end);
    loops_ = loops;
    if (now().kind == Tok::name) take();  // {% endmacro name %}
    end_tag();
    return block;
  }

  std::unique_ptr<Stmt> call_statement(Place place) {
    auto s = make(StmtKind::call);
    s->place = place;
    if (is_op("(")) s->parameters = parameters();
    s->expr = expression();
    if (s->expr->kind != ExprKind::call) throw error_at(s->expr->place, "expected a call");
    end_tag();
    s->bodies.push_back(callable_body("endcall"));
    return s;
  }

  std::unique_ptr<Stmt> filter_statement(Place place) {
    auto s = make(StmtKind::filter);
    s->place = place;
    s->expr = filters(empty_name(), true);
    end_tag();
    s->bodies.push_back(body_until("endfilter"));
    end_tag();
    return s;
  }

  std::unique_ptr<Stmt> with_statement(Place place) {
    auto s = make(StmtKind::scope);
    s->place = place;
    while (now().kind == Tok::name) {
      s->names.push_back(take().text);
      expect_op("=");
      s->conditions.push_back(expression());
      if (!skip_op(",")) break;
    }
    end_tag();
    s->bodies.push_back(body_until("endwith"));
    end_tag();
    return s;
  }

  // Expressions, loosest first.

  ExprPtr node(ExprKind kind, Place place) const {
    auto e = std::make_unique<Expr>();
    e->kind = kind;
    e->place = place;
    return e;
  }
  ExprPtr node(ExprKind kind, Place place, ExprPtr a, ExprPtr b = nullptr) const {
    ExprPtr e = node(kind, place);
    e->add(std::move(a));
    if (b) e->add(std::move(b));
    return e;
  }
  ExprPtr literal(Place place, Value value) const {
    ExprPtr e = node(ExprKind::literal, place);
    e->value = std::move(value);
    return e;
  }
  ExprPtr empty_name() const { return node(ExprKind::name, now().place); }

  // One expression, or several separated by commas.
  ExprPtr tuple(bool conditional = true) {
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

  ExprPtr expression() {
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
  ExprPtr chain(Next next, Step step) {
    ExprPtr e = next();
    while (step(e)) {
      if (e->height > kMaxHeight)
        throw error_at(now().place, cat("an expression of more than ", kMaxHeight, " levels"));
    }
    return e;
  }

  ExprPtr logical_or() {
    return chain([&] { return logical_and(); },
                 [&](ExprPtr& e) {
                   const Place place = now().place;
                   if (!skip_name("or")) return false;
                   e = node(ExprKind::logical_or, place, std::move(e), logical_and());
                   return true;
                 });
  }
  ExprPtr logical_and() {
    return chain([&] { return logical_not(); },
                 [&](ExprPtr& e) {
                   const Place place = now().place;
                   if (!skip_name("and")) return false;
                   e = node(ExprKind::logical_and, place, std::move(e), logical_not());
                   return true;
                 });
  }
  ExprPtr logical_not() {
    const Place place = now().place;
    if (!is_name("not")) return comparison();
    const Deeper deeper(*this, place);
    take();
    return node(ExprKind::logical_not, place, logical_not());
  }

  ExprPtr comparison() {
    ExprPtr first = sum();
    ExprPtr e;
    for (;;) {
      std::string op;
      const Place place = now().place;
      constexpr std::string_view kOps[] = {"==", "!=", "<", ">", "<=", ">="};
      if (now().kind == Tok::op &&
          std::find(std::begin(kOps), std::end(kOps), now().text) != std::end(kOps)) {
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

  ExprPtr binary(ExprPtr (Parser::*next)(), std::span<const std::string_view> ops) {
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
  ExprPtr sum() {
    constexpr std::string_view kOps[] = {"+", "-"};
    return binary(&Parser::concatenation, kOps);
  }
  ExprPtr concatenation() {
    constexpr std::string_view kOps[] = {"~"};
    return binary(&Parser::product, kOps);
  }
  ExprPtr product() {
    constexpr std::string_view kOps[] = {"*", "/", "//", "%"};
    return binary(&Parser::power, kOps);
  }
  ExprPtr power() {
    constexpr std::string_view kOps[] = {"**"};
    return binary(&Parser::filtered_unary, kOps);
  }
  ExprPtr filtered_unary() { return unary(true); }

  ExprPtr unary(bool with_filters) {
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

  ExprPtr primary() {
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
    --at_;
    throw error_at(t.place, cat("expected an expression, found ", found()));
  }

  ExprPtr name_or_constant(const Token& t) {
    if (t.text == "true" || t.text == "True") return literal(t.place, Value(true));
    if (t.text == "false" || t.text == "False") return literal(t.place, Value(false));
    if (t.text == "none" || t.text == "None") return literal(t.place, Value());
    ExprPtr e = node(ExprKind::name, t.place);
    e->text = t.text;
    return e;
  }
  ExprPtr parenthesis(Place place) {
    if (skip_op(")")) return node(ExprKind::tuple, place);
    ExprPtr e = tuple();
    expect_op(")");
    return e;
  }
  ExprPtr list(Place place) {
    ExprPtr e = node(ExprKind::list, place);
    while (!is_op("]")) {
      e->add(expression());
      if (!skip_op(",")) break;
    }
    expect_op("]");
    return e;
  }
  ExprPtr dict(Place place) {
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

  ExprPtr postfix(ExprPtr e) {
    return chain([&] { return std::move(e); },
                 [&](ExprPtr& x) {
                   const Place place = now().place;
                   if (skip_op(".")) {
                     x = node(ExprKind::attribute, place, std::move(x));
                     x->text = now().kind == Tok::integer ? take().text : expect_name("an attribute name");
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

  ExprPtr subscript(ExprPtr object, Place place) {
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

  void arguments(Expr& e) {
    expect_op("(");
    while (!is_op(")")) {
      if (is_op("*") || is_op("**"))
        throw error_at(now().place, "arguments given with '*' are not supported");
      Argument a;
      if (now().kind == Tok::name && after().kind == Tok::op && after().text == "=") {
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

  std::string dotted_name(std::string_view what) {
    std::string name = expect_name(what);
    while (skip_op(".")) name.append(".").append(expect_name(what));
    return name;
  }

  // | filter(...) and is test, as often as they come. `bare` begins with a filter that has no bar before it.
  ExprPtr filters(ExprPtr e, bool bare = false) {
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

  ExprPtr test(ExprPtr e, Place place) {
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
  bool begins_test_argument() const {
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

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Block parse(std::string_view source) { return Parser(tokenize(source)).run(); }

}  // namespace rlx::text::jinja
