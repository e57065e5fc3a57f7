// Reading extents: sum := product (('+'|'-') product)*, product := factor ('*' factor)*,
// factor := number | symbol | function(sum, sum) | '(' sum ')'.
#include <charconv>

#include "rlx/base/dim_sum.h"
#include "rlx/base/error.h"

namespace rlx {
namespace {

constexpr int kMaxDepth = 32;

class Parser {
 public:
  Parser(std::string_view text, size_t& pos) : text_(text), pos_(pos) {}

  // The terms are added at once: no partial sum is kept, nor need it be a size.
  Dim sum(int depth) {
    if (depth > kMaxDepth) throw invalid("dim: the expression nests deeper than ", kMaxDepth);
    std::vector<SignedDim> terms;
    bool negative = accept('-');
    for (;;) {
      terms.push_back({product(depth), negative});
      if (accept('+')) {
        negative = false;
      } else if (accept('-')) {
        negative = true;
      } else {
        return terms.size() == 1 && !negative ? terms[0].dim : sum_of(terms);
      }
    }
  }

 private:
  Dim product(int depth) {
    Dim out = factor(depth);
    while (accept('*')) out = out * factor(depth);
    return out;
  }

  Dim factor(int depth) {
    skip_space();
    if (accept('(')) {
      const Dim inner = sum(depth + 1);
      expect(')');
      return inner;
    }
    if (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      int64_t value = 0;
      const char* begin = text_.data() + pos_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error != std::errc()) throw invalid("dim: number too large");
      pos_ += size_t(end - begin);
      return Dim(value);
    }
    size_t end = pos_;
    while (end < text_.size() && is_identifier(text_.substr(pos_, end - pos_ + 1))) ++end;
    if (end == pos_) throw invalid("dim: expected a number, a symbol or '('");
    const std::string_view name = text_.substr(pos_, end - pos_);
    pos_ = end;
    if (!accept('(')) return Dim::symbol(name);
    const Dim a = sum(depth + 1);
    expect(',');
    const Dim b = sum(depth + 1);
    expect(')');
    if (name == "floordiv") return floordiv(a, b);
    if (name == "mod") return mod(a, b);
    if (name == "max") return max(a, b);
    if (name == "min") return min(a, b);
    throw invalid("dim: unknown function '", name, "'; known: floordiv, mod, max, min");
  }

  void skip_space() {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
  }
  bool accept(char c) {
    skip_space();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw invalid("dim: expected '", c, "'");
  }

  std::string_view text_;
  size_t& pos_;
};

}  // namespace

Dim parse_dim(std::string_view text, size_t& pos) {
  if (text.substr(pos, 2) == "-1") {
    pos += 2;
    return Dim::inferred();
  }
  return Parser(text, pos).sum(0);
}

}  // namespace rlx
