#include "rlx/text/template/parser.h"

#include <algorithm>
#include <span>

#include "rlx/text/template/expression_parser.h"

namespace rlx::text::jinja {

namespace {

// Statements; their expressions come from the base.
class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Block run() {
    Block block = body({});
    if (now().kind != Tok::end) throw error_at(now().place, cat("unexpected '", now().text, "'"));
    return block;
  }

 private:
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

  // a, (b, c): one name stands for itself, unless a comma makes it a list of one.
  Target targets() {
    const Deeper deeper(*this, now().place);
    Target out;
    bool comma = false;
    do {
      if (skip_op("(")) {
        out.parts.push_back(targets());
        expect_op(")");
      } else {
        out.parts.push_back({expect_name("a variable name"), {}});
      }
      comma = skip_op(",");
    } while (comma && ((now().kind == Tok::name && now().text != "in") || is_op("(")));
    if (out.parts.size() > 1 || comma) return out;
    return Target(std::move(out.parts[0]));
  }

  std::unique_ptr<Stmt> for_statement(Place place) {
    auto s = make(StmtKind::loop);
    s->place = place;
    s->target = targets();
    if (!skip_name("in")) throw error_at(now().place, cat("expected 'in', found ", found()));
    s->expr = tuple(false);
    if (skip_name("if")) s->condition = expression();
    s->recursive = skip_name("recursive");
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
    s->target = targets();
    if (!s->target.name.empty() && skip_op(".")) s->attribute = expect_name("an attribute name");
    if (skip_op("=")) {
      s->expr = tuple();
      end_tag();
      return s;
    }
    if (s->target.name.empty() || !s->attribute.empty())
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
    callable_body(*s, "endmacro");
    return s;
  }

  // A macro or call body: break and continue do not reach the loop around it.
  void callable_body(Stmt& s, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    const NameMarks outer = std::exchange(marks_, {});
    s.bodies.push_back(body_until(end));
    loops_ = loops;
    s.uses_varargs = marks_.varargs;
    s.uses_kwargs = marks_.kwargs;
    s.uses_caller = marks_.caller;
    marks_ = {outer.varargs || marks_.varargs, outer.kwargs || marks_.kwargs, outer.caller || marks_.caller};
    if (now().kind == Tok::name) take();  // {% endmacro name %}
    end_tag();
  }

  std::unique_ptr<Stmt> call_statement(Place place) {
    auto s = make(StmtKind::call);
    s->place = place;
    if (is_op("(")) s->parameters = parameters();
    s->expr = expression();
    if (s->expr->kind != ExprKind::call) throw error_at(s->expr->place, "expected a call");
    end_tag();
    callable_body(*s, "endcall");
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

  int loops_ = 0;
};

}  // namespace

Block parse(std::string_view source) { return Parser(tokenize(source)).run(); }

}  // namespace rlx::text::jinja
