#include "rlx/ir/cursor.h"

#include <charconv>

namespace rlx::ir {
namespace {

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

void Cursor::fail_at(size_t pos, std::string_view message) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < pos && i < text_.size(); ++i) {
    text_[i] == '\n' ? (++line, column = 1) : ++column;
  }
  Error e = invalid("parse: ", message);
  e.set_origin(cat("line ", line, " column ", column));
  throw e;
}

void Cursor::skip() {
  while (pos_ < text_.size()) {
    if (is_space(text_[pos_])) {
      ++pos_;
    } else if (text_.substr(pos_, 2) == "//") {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else {
      return;
    }
  }
}

bool Cursor::accept(std::string_view token) {
  skip();
  if (text_.substr(pos_, token.size()) != token) return false;
  pos_ += token.size();
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!accept(token)) fail(cat("expected '", token, "', found ", found()));
}

std::string Cursor::found() {
  if (at_end()) return "the end of the text";
  size_t end = pos_ + 1;
  while (end < text_.size() && end - pos_ < 20 && is_word_char(text_[end]) && is_word_char(text_[pos_]))
    ++end;
  return cat("'", text_.substr(pos_, end - pos_), "'");
}

std::string_view Cursor::peek_word() {
  skip();
  size_t end = pos_;
  if (end < text_.size() && (text_[end] < '0' || text_[end] > '9') && text_[end] != '.') {
    while (end < text_.size() && is_word_char(text_[end])) ++end;
  }
  return text_.substr(pos_, end - pos_);
}

bool Cursor::accept_word(std::string_view word) {
  if (peek_word() != word) return false;
  pos_ += word.size();
  return true;
}

std::string Cursor::name(std::string_view what) {
  if (peek() == '"') return quoted();
  const std::string_view word = peek_word();
  if (word.empty()) fail(cat("expected ", what, ", found ", found()));
  pos_ += word.size();
  return std::string(word);
}

std::string Cursor::quoted() {
  const size_t start = pos_;
  expect("\"");
  std::string out;
  while (pos_ < text_.size() && text_[pos_] != '"') {
    char c = text_[pos_++];
    if (c == '\n') fail_at(start, "a quoted text must end on its line");
    if (c == '\\') c = escape();
    out.push_back(c);
  }
  if (pos_ >= text_.size()) fail_at(start, "the quoted text has no end");
  ++pos_;
  return out;
}

char Cursor::escape() {
  if (pos_ >= text_.size()) fail("the quoted text has no end");
  const char c = text_[pos_++];
  if (c == '"' || c == '\\') return c;
  if (c == 'n') return '\n';
  unsigned value = 0;
  if (c != 'x' || pos_ + 2 > text_.size() ||
      std::from_chars(text_.data() + pos_, text_.data() + pos_ + 2, value, 16).ptr !=
          text_.data() + pos_ + 2) {
    fail("unknown escape; known: \\\" \\\\ \\n \\xHH");
  }
  pos_ += 2;
  return char(value);
}

uint64_t Cursor::number(std::string_view what) {
  skip();
  uint64_t value = 0;
  const char* begin = text_.data() + pos_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) fail(cat("expected ", what, ", found ", found()));
  pos_ += size_t(end - begin);
  return value;
}

char Cursor::step() {
  if (pos_ >= text_.size()) return '\0';
  const size_t start = pos_;
  skip();
  if (pos_ != start) return '\0';
  if (const size_t length = peek_word().size(); length > 0) return pos_ += length, '\0';
  if (text_[pos_] == '"') {
    size_t end = pos_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (end < text_.size() && text_[end] == '"') return pos_ = end + 1, '\0';
  }
  return text_[pos_++];
}

bool Cursor::accept_digits() {
  skip();
  const size_t start = pos_;
  while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') ++pos_;
  return pos_ > start;
}

// No exceptions here: whoever skips asks at every word.
bool Cursor::at_statement() {
  const size_t start = pos_;
  const auto matches = [this] {
    if (accept("%")) {
      if (!accept_digits()) return false;
    } else if ((peek() != '"' && peek_word().empty()) || step() != '\0') {
      return false;
    }
    if (accept(":") && !accept_digits()) return false;
    if (!accept("=")) return false;
    const std::string_view word = peek_word();
    if (word.empty() || word == "graph") return false;
    pos_ += word.size();
    return peek() == '(';
  };
  const bool found = matches();
  pos_ = start;
  return found;
}

bool Cursor::starts_line() const {
  for (size_t i = pos_; i-- > 0;) {
    if (text_[i] == '\n') return true;
    if (!is_space(text_[i])) return false;
  }
  return true;
}

}  // namespace rlx::ir
