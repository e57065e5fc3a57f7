// The characters of a text form with their position; what rlx/ir/parse.cpp is written on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/base/error.h"

namespace rlx::ir {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string_view message) const { fail_at(pos_, message); }
  [[noreturn]] void fail_at(size_t pos, std::string_view message) const;

  size_t pos() const { return pos_; }
  void rewind(size_t pos) { pos_ = pos; }
  size_t size() const { return text_.size(); }

  /// Over white space and comments.
  void skip();
  bool at_end() { return skip(), pos_ >= text_.size(); }
  char peek() { return at_end() ? '\0' : text_[pos_]; }
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// What stands here, in quotes, for messages.
  std::string found();

  /// A word without consuming it; empty when the next thing is not one.
  std::string_view peek_word();
  bool accept_word(std::string_view word);
  /// A word or a quoted string.
  std::string name(std::string_view what);
  std::string quoted();
  uint64_t number(std::string_view what);

  /// Runs a reader of rlx/base or literals at the cursor and turns its errors into errors of this text.
  template <class Read>
  auto read(Read reader) {
    skip();
    try {
      return reader(text_, pos_);
    } catch (const Error& e) {
      if (!e.origin().empty()) throw;
      fail(e.message());
    }
  }

  /// Over one thing: a word, a quoted text, a comment or white space, else a single character, which is
  /// returned (0 for the others). A quoted text without an end is one character.
  char step();
  /// Whether `name =`, `%3 =` or `name:2 =` and then a call begins here; consumes nothing.
  bool at_statement();
  /// Whether the white space before this place has a line break, or there is nothing before it.
  bool starts_line() const;

 private:
  char escape();
  bool accept_digits();

  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace rlx::ir
