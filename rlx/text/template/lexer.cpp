#include "rlx/text/template/lexer.h"

#include <charconv>

#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

Error error_at(Place place, const std::string& message) {
  return invalid("template: line ", place.line, ", column ", place.column, ": ", message);
}

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_then_tag();
    tokens_.push_back({Tok::end, place(), ""});
    return std::move(tokens_);
  }

 private:
  Place place() const { return place_; }
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool looking_at(std::string_view s) const { return std::string_view(source_).substr(at_).starts_with(s); }
  void advance(size_t count) {
    for (size_t i = 0; i < count && at_ < source_.size(); ++i, ++at_) {
      if (source_[at_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(source_[at_]) & 0xC0) != 0x80) {
        ++place_.column;  // columns count characters
      }
    }
  }

  // Data up to the next tag, cut as the tag's left side asks, then the tag.
  void text_then_tag() {
    const Place begin = place();
    size_t tag = at_;
    while (tag < source_.size() &&
           !(source_[tag] == '{' && tag + 1 < source_.size() &&
             (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#')))
      ++tag;
    std::string data = source_.substr(at_, tag - at_);
    advance(tag - at_);
    if (at_ >= source_.size()) return add_data(begin, data);
    const char kind = peek(1);
    const char sign = peek(2);
    if (sign == '-') {
      while (!data.empty() && is_blank(data.back())) data.pop_back();
    } else if (sign != '+' && kind != '{') {
      strip_indent(data);
    }
    add_data(begin, data);
    const Place open = place();
    advance(sign == '-' || (sign == '+' && kind != '#') ? 3 : 2);
    if (kind == '#') return comment(open);
    if (kind == '%' && raw_block(open)) return;
    tokens_.push_back({kind == '{' ? Tok::output_begin : Tok::block_begin, open, ""});
    inside_tag(open, kind == '{');
  }

  void add_data(Place begin, std::string data) {
    if (!data.empty()) tokens_.push_back({Tok::data, begin, std::move(data)});
  }

  // lstrip_blocks: blanks between the start of the line and the tag go.
  void strip_indent(std::string& data) const {
    const size_t line = data.rfind('\n') + 1;
    if (line == 0 && !line_starting_) return;
    if (data.find_first_not_of(" \t", line) == data.npos) data.resize(line);
  }

  // The right side of a tag: '-' takes all blanks, otherwise a block takes one line break (trim_blocks).
  void after_tag(char sign, bool is_block) {
    const size_t before = at_;
    if (sign == '-') {
      while (at_ < source_.size() && is_blank(source_[at_])) advance(1);
    } else if (sign != '+' && is_block && peek() == '\n') {
      advance(1);
    }
    line_starting_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void comment(Place open) {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) throw error_at(open, "the comment is not closed; expected '#}'");
    const char sign =
        end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    after_tag(sign, true);
  }

  // {% raw %} ... {% endraw %}: true when there was one.
  bool raw_block(Place open) {
    size_t p = skip_blanks(at_);
    if (source_.compare(p, 3, "raw") != 0) return false;
    p = skip_blanks(p + 3);
    const char sign = p < source_.size() && (source_[p] == '-' || source_[p] == '+') ? source_[p] : '\0';
    if (sign) ++p;
    if (source_.compare(p, 2, "%}") != 0) return false;
    advance(p + 2 - at_);
    after_tag(sign, false);  // a line break after it belongs to the text
    const Place begin = place();
    for (size_t tag = source_.find("{%", at_); tag != source_.npos; tag = source_.find("{%", tag + 2)) {
      size_t q = tag + 2;
      const char left = q < source_.size() && (source_[q] == '-' || source_[q] == '+') ? source_[q] : '\0';
      q = skip_blanks(left ? q + 1 : q);
      if (source_.compare(q, 6, "endraw") != 0) continue;
      q = skip_blanks(q + 6);
      const char right = q < source_.size() && (source_[q] == '-' || source_[q] == '+') ? source_[q] : '\0';
      if (right) ++q;
      if (source_.compare(q, 2, "%}") != 0) continue;
      std::string data = source_.substr(at_, tag - at_);
      if (left == '-') {
        while (!data.empty() && is_blank(data.back())) data.pop_back();
      } else if (left != '+') {
        strip_indent(data);
      }
      add_data(begin, std::move(data));
      advance(q + 2 - at_);
      after_tag(right, true);
      return true;
    }
    throw error_at(open, "the raw block is not closed; expected '{% endraw %}'");
  }

  size_t skip_blanks(size_t p) const {
    while (p < source_.size() && is_blank(source_[p])) ++p;
    return p;
  }

  void inside_tag(Place open, bool output) {
    const std::string_view close = output ? "}}" : "%}";
    int depth = 0;  // of brackets: '}}' may close two dicts
    for (;;) {
      while (at_ < source_.size() && is_blank(source_[at_])) advance(1);
      if (at_ >= source_.size()) throw error_at(open, cat("the tag is not closed; expected '", close, "'"));
      const Place here = place();
      if (depth == 0) {
        const char sign = peek() == '-' || peek() == '+' ? peek() : '\0';
        if (looking_at(close) || (sign && std::string_view(source_).substr(at_ + 1).starts_with(close))) {
          const bool applies = sign == '-' || (sign == '+' && !output);
          if (!sign || applies) {
            tokens_.push_back({output ? Tok::output_end : Tok::block_end, here, ""});
            advance(sign ? 3 : 2);
            return after_tag(sign, !output);
          }
        }
      }
      const char c = peek();
      if (is_name_start(c)) {
        size_t n = 1;
        while (is_name_start(peek(n)) || is_digit(peek(n))) ++n;
        add(Tok::name, here, n);
      } else if (is_digit(c)) {
        number(here);
      } else if (c == '\'' || c == '"') {
        string(here, c);
      } else {
        op(here, depth);
      }
    }
  }

  void add(Tok kind, Place here, size_t length) {
    tokens_.push_back({kind, here, source_.substr(at_, length)});
    advance(length);
  }

  void number(Place here) {
    if (const int base = prefixed_base()) {
      size_t n = 2;
      while (hex(peek(n)) >= 0 || (peek(n) == '_' && hex(peek(n + 1)) >= 0)) ++n;
      std::string digits = source_.substr(at_ + 2, n - 2);
      std::erase(digits, '_');
      int64_t value = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
      if (error != std::errc() || end != digits.data() + digits.size())
        throw error_at(here, cat("the number ", source_.substr(at_, n), " is malformed or too large"));
      tokens_.push_back({Tok::integer, here, cat(value)});
      return advance(n);
    }
    size_t n = 0;
    bool whole = true;
    while (is_digit(peek(n)) || (peek(n) == '_' && is_digit(peek(n + 1)))) ++n;
    if (peek(n) == '.' && is_digit(peek(n + 1))) {
      whole = false;
      ++n;
      while (is_digit(peek(n))) ++n;
    }
    const size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
    if ((peek(n) == 'e' || peek(n) == 'E') && is_digit(peek(n + 1 + sign))) {
      whole = false;
      n += 1 + sign;
      while (is_digit(peek(n))) ++n;
    }
    add(whole ? Tok::integer : Tok::number, here, n);
    std::erase(tokens_.back().text, '_');
  }

  // Of a number that begins with 0x, 0o or 0b; 0 for any other.
  int prefixed_base() const {
    if (peek() != '0') return 0;
    switch (peek(1)) {
      case 'x':
      case 'X':
        return 16;
      case 'o':
      case 'O':
        return 8;
      case 'b':
      case 'B':
        return 2;
      default:
        return 0;
    }
  }

  static int hex(char c) {
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  }

  // \xNN, \uNNNN and \UNNNNNNNN: reads the digits after the letter.
  char32_t hex_escape(Place here, size_t digits) {
    char32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int d = hex(peek(i));
      if (d < 0)
        throw error_at(here, cat("the string has an escape with fewer than ", digits, " hex digits"));
      code = code * 16 + char32_t(d);
    }
    advance(digits);
    return code;
  }

  void string(Place here, char quote) {
    std::string out;
    advance(1);
    for (;;) {
      if (at_ >= source_.size()) throw error_at(here, "the string is not closed");
      const char c = peek();
      if (c == quote) break;
      if (c != '\\') {
        out.push_back(c);
        advance(1);
        continue;
      }
      const char e = peek(1);
      advance(2);
      switch (e) {
        case 'n':
          out.push_back('\n');
          break;
        case 't':
          out.push_back('\t');
          break;
        case 'r':
          out.push_back('\r');
          break;
        case 'b':
          out.push_back('\b');
          break;
        case 'f':
          out.push_back('\f');
          break;
        case 'v':
          out.push_back('\v');
          break;
        case 'a':
          out.push_back('\a');
          break;
        case '0':
          out.push_back('\0');
          break;
        case '\n':
          break;
        case '\\':
        case '\'':
        case '"':
          out.push_back(e);
          break;
        case 'x':
        case 'u':
        case 'U': {
          const char32_t code = hex_escape(here, e == 'x' ? 2 : e == 'u' ? 4 : 8);
          if (code >= 0x110000) throw error_at(here, "the string has an escape above U+10FFFF");
          append_utf8(out, code);
          break;
        }
        default:
          out.push_back('\\');
          out.push_back(e);
      }
    }
    advance(1);
    tokens_.push_back({Tok::string, here, std::move(out)});
  }

  void op(Place here, int& depth) {
    constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view two : kTwo)
      if (looking_at(two)) return add(Tok::op, here, 2);
    const char c = peek();
    if (std::string_view("+-*/%~[](){}><=.:|,;").find(c) == std::string_view::npos)
      throw error_at(
          here, cat("unexpected character '", source_.substr(at_, decode_utf8(source_, at_).length), "'"));
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') {
      if (--depth < 0) throw error_at(here, cat("unexpected '", c, "'"));
    }
    add(Tok::op, here, 1);
  }

  std::string source_;
  size_t at_ = 0;
  Place place_;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  // Line breaks become \n, and one at the very end is not part of the template.
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text.push_back(source[i]);
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return Lexer(std::move(text)).run();
}

}  // namespace rlx::text::jinja
