// The JSON writer and quoter of every room.
//
//   JsonWriter out({.indent = 2});
//   out.begin_object();
//   out.member("name", "x");
//   out.key("shape"), out.begin_array(), out.value(2), out.end_array();
//   out.end_object();
//   out.take();
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/json.h"

namespace rlx {

/// How strings are written.
struct JsonQuoting {
  bool ascii = false;            // characters above U+007F as \u escapes
  bool replace_invalid = false;  // bytes that are not UTF-8 become U+FFFD; otherwise they are a user error
};

/// Appends `text` in quotes, with the escapes JSON asks for.
void append_json_string(std::string& out, std::string_view text, JsonQuoting quoting = {});
/// The text in quotes.
std::string json_quote(std::string_view text);

/// How a document is written.
struct JsonLayout {
  int indent = -1;               // spaces for each level; below zero: one line, no spaces
  bool python_numbers = false;   // NaN and Infinity; otherwise the strings "nan", "inf" and "-inf"
  bool replace_invalid = false;  // as in JsonQuoting
};

/// Puts commas, line breaks and quotes. A call out of order (a value without key in an object, an end
/// without begin) is an internal error.
class JsonWriter {
 public:
  explicit JsonWriter(JsonLayout layout = {}) : layout_(layout) {}

  // A value of several.
  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  /// Of the value that follows, in an object.
  void key(std::string_view);

  // A value, behind a key or in an array.
  void null();
  void value(bool);
  void value(double);
  void value(std::string_view);
  void value(const char* text) { value(std::string_view(text)); }
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(JsonView);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void value(T number) {
    before_value();
    append_text(out_, number);
  }
  template <class T>
  void value(const std::vector<T>& list) {
    begin_array();
    for (const T& item : list) value(item);
    end_array();
  }

  /// A key and its value.
  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

  /// The text; everything begun must have ended.
  std::string take();

 private:
  struct Level {
    bool object, empty = true;
  };
  void begin(char bracket);
  void end(char bracket);
  void before_value();
  void separate();

  JsonLayout layout_;
  std::string out_;
  std::vector<Level> open_;
  bool after_key_ = false;
};

}  // namespace rlx
