#include "rlx/base/json_write.h"

#include <cmath>

#include "rlx/base/error.h"
#include "rlx/base/utf8.h"

namespace rlx {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void append_unit(std::string& out, unsigned unit) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[unit >> shift & 15];
}

// A character above U+007F in ASCII: one UTF-16 unit, or two.
void append_escaped(std::string& out, std::string_view character) {
  const auto byte = [&](size_t i) { return unsigned(static_cast<unsigned char>(character[i])); };
  unsigned code = byte(0) & (0x7Fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  if (code < 0x10000) return append_unit(out, code);
  append_unit(out, 0xD800 + ((code - 0x10000) >> 10));
  append_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

// The letter after the backslash for characters with a short escape, 0 for others.
char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, JsonQuoting quoting) {
  const char* const end = text.data() + text.size();
  out += '"';
  for (const char* at = text.data(); at != end;) {
    const char c = *at;
    if (static_cast<unsigned char>(c) >= 0x80) {
      const size_t length = utf8_length(at, end);
      if (length == 0 && !quoting.replace_invalid)
        throw invalid("json: text of ", text.size(), " bytes is not valid UTF-8 at byte ", at - text.data());
      const std::string_view character = length == 0 ? kReplacement : std::string_view(at, length);
      quoting.ascii ? append_escaped(out, character) : (void)out.append(character);
      at += length == 0 ? 1 : length;
      continue;
    }
    if (const char letter = short_escape(c)) {
      out += '\\';
      out += letter;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_unit(out, unsigned(c));
    } else {
      out += c;
    }
    ++at;
  }
  out += '"';
}

std::string json_quote(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

void JsonWriter::separate() {
  if (open_.empty()) return;
  if (!open_.back().empty) out_ += ',';
  open_.back().empty = false;
  if (layout_.indent < 0) return;
  out_ += '\n';
  out_.append(open_.size() * size_t(layout_.indent), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  RLX_CHECK(open_.empty() ? out_.empty() : !open_.back().object, "JSON: a value where a key belongs");
  separate();
}

void JsonWriter::key(std::string_view name) {
  RLX_CHECK(!open_.empty() && open_.back().object && !after_key_, "JSON: the key '", name,
            "' is in no object");
  separate();
  append_json_string(out_, name, {.replace_invalid = layout_.replace_invalid});
  out_ += layout_.indent < 0 ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::begin(char bracket) {
  before_value();
  out_ += bracket;
  open_.push_back({bracket == '{'});
}

void JsonWriter::end(char bracket) {
  RLX_CHECK(!open_.empty() && open_.back().object == (bracket == '}') && !after_key_,
            "JSON: an end without its begin");
  const bool empty = open_.back().empty;
  open_.pop_back();
  if (!empty && layout_.indent >= 0) {
    out_ += '\n';
    out_.append(open_.size() * size_t(layout_.indent), ' ');
  }
  out_ += bracket;
}

void JsonWriter::null() {
  before_value();
  out_ += "null";
}

void JsonWriter::value(bool v) {
  before_value();
  append_text(out_, v);
}

void JsonWriter::value(double v) {
  before_value();
  if (std::isfinite(v)) return append_text(out_, v);
  if (layout_.python_numbers) {
    out_ += std::isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";
  } else {
    out_ += std::isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"";
  }
}

void JsonWriter::value(std::string_view v) {
  before_value();
  append_json_string(out_, v, {.replace_invalid = layout_.replace_invalid});
}

void JsonWriter::value(JsonView v) {
  switch (v.kind()) {
    case JsonKind::null:
      return null();
    case JsonKind::boolean:
      return value(v.boolean());
    case JsonKind::integer:
      // Only integers beyond i64 differ when they are read without sign.
      return v.real() < 0x1p63 ? value(v.integer()) : value(v.unsigned_integer());
    case JsonKind::real:
      return value(v.real());
    case JsonKind::string:
      return value(v.string());
    case JsonKind::array:
      begin_array();
      for (const JsonView item : v.items()) value(item);
      return end_array();
    case JsonKind::object:
      begin_object();
      for (const auto [name, item] : v.members()) {
        key(name);
        value(item);
      }
      return end_object();
  }
}

std::string JsonWriter::take() {
  RLX_CHECK(open_.empty() && !after_key_, "JSON: ", open_.size(), " levels are still open");
  return std::move(out_);
}

}  // namespace rlx
