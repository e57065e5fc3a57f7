// A place in the tokens of a template, and what a parser asks of it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/template/lexer.h"

namespace rlx::text::jinja {

class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  static constexpr int kMaxDepth = 100;  // of nested expressions and blocks

  // Guards the recursion of the parser and, because trees are built by it, that of the evaluator.
  struct Deeper {
    Deeper(TokenCursor& c, Place place) : cursor(c) {
      if (++cursor.depth_ > kMaxDepth)
        throw error_at(place, cat("nested deeper than ", kMaxDepth, " levels"));
    }
    ~Deeper() { --cursor.depth_; }
    TokenCursor& cursor;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_op(std::string_view op) const { return now().kind == Tok::op && now().text == op; }
  bool is_name(std::string_view name) const { return now().kind == Tok::name && now().text == name; }
  bool skip_op(std::string_view op) { return is_op(op) && (take(), true); }
  bool skip_name(std::string_view name) { return is_name(name) && (take(), true); }
  static std::string found(const Token& t) {
    switch (t.kind) {
      case Tok::end:
        return "the end of the template";
      case Tok::block_end:
        return "'%}'";
      case Tok::output_end:
        return "'}}'";
      case Tok::string:
        return cat("the string '", t.text, "'");
      default:
        return cat("'", t.text, "'");
    }
  }
  std::string found() const { return found(now()); }
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

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace rlx::text::jinja
