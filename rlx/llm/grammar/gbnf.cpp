#include "rlx/llm/grammar/gbnf.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "rlx/base/error.h"
#include "rlx/text/unicode.h"

namespace rlx::llm {

namespace {

// Characters that a negated class and the dot take. Lead bytes above those of Unicode are among them, as llama.cpp has it; a
// zero byte is not: it ends texts in much that will read them.
const CharacterSet kAnything{{1, 0x3FFFFF}};

constexpr int kMaxDepth = 200;

class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source) {}

  RuleSet parse(std::string_view root) {
    for (skip_space(true); !at_end(); skip_space(true)) parse_rule();
    const auto found = numbers_.find(std::string(root));
    if (found == numbers_.end() || !rules_.rules[size_t(found->second)].body)
      throw invalid("gbnf: there is no rule '", root, "' to start with");
    for (const auto& [name, at] : first_use_)
      if (!rules_.rules[size_t(numbers_.at(name))].body) {
        at_ = at;
        throw error("rule '", name, "' is not defined");
      }
    rules_.root = found->second;
    return std::move(rules_);
  }

 private:
  template <class... Args>
  Error error(const Args&... what) const {
    const std::string_view before = source_.substr(0, at_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t start = before.rfind('\n');
    return invalid("gbnf: line ", line, " column ", at_ - (start == before.npos ? 0 : start + 1) + 1, ": ",
                   what...);
  }

  bool at_end() const { return at_ >= source_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool take(std::string_view word) {
    if (!source_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    if (peek() != c || at_end()) throw error("'", c, "' expected");
    ++at_;
  }
  void skip_space(bool lines) {
    for (; !at_end(); ++at_) {
      if (peek() == '#')
        while (!at_end() && peek() != '\n' && peek() != '\r') ++at_;
      const char c = peek();
      if (at_end() || (c != ' ' && c != '\t' && (!lines || (c != '\n' && c != '\r')))) return;
    }
  }

  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  std::string parse_name() {
    const size_t start = at_;
    while (is_name(peek())) ++at_;
    if (at_ == start) throw error("a name expected");
    return std::string(source_.substr(start, at_ - start));
  }
  int number_of(const std::string& name) {
    const auto [found, fresh] = numbers_.try_emplace(name, 0);
    if (fresh) found->second = rules_.add(name);
    return found->second;
  }

  void parse_rule() {
    const size_t start = at_;
    const int rule = number_of(parse_name());
    skip_space(false);
    if (!take("::=")) throw error("'::=' expected");
    skip_space(true);
    ExpressionPtr body = parse_choice(0);
    if (!at_end() && peek() != '\n' && peek() != '\r')
      throw error("the rule ends here, or something is not part of it");
    if (rules_.rules[size_t(rule)].body) {
      at_ = start;
      throw error("rule '", rules_.rules[size_t(rule)].name, "' is defined twice");
    }
    rules_.rules[size_t(rule)].body = std::move(body);
  }

  ExpressionPtr parse_choice(int depth) {
    if (depth > kMaxDepth) throw error("more than ", kMaxDepth, " parentheses in each other");
    std::vector<ExpressionPtr> parts{parse_sequence(depth)};
    while (peek() == '|') {
      ++at_;
      skip_space(true);
      parts.push_back(parse_sequence(depth));
    }
    return any_of(std::move(parts));
  }

  ExpressionPtr parse_sequence(int depth) {
    std::vector<ExpressionPtr> parts;
    for (;;) {
      const char c = peek();
      ExpressionPtr item;
      if (at_end()) break;
      if (c == '"')
        item = parse_text();
      else if (c == '[')
        item = parse_class();
      else if (c == '.')
        ++at_, item = one_of(kAnything);
      else if (c == '<' || (c == '!' && peek(1) == '<'))
        item = parse_token();
      else if (c == '(')
        item = parse_group(depth);
      else if (is_name(c))
        item = parse_call();
      else
        break;
      skip_space(depth > 0);
      for (ExpressionPtr more; (more = parse_repetition(item)); skip_space(depth > 0)) item = std::move(more);
      parts.push_back(std::move(item));
      // A choice may go on in the next line when that starts with a bar.
      if (depth == 0 && (peek() == '\n' || peek() == '\r')) {
        const size_t line_end = at_;
        skip_space(true);
        if (peek() != '|') at_ = line_end;
      }
    }
    return in_sequence(std::move(parts));
  }

  ExpressionPtr parse_text() {
    ++at_;
    std::string text;
    while (peek() != '"') {
      if (at_end()) throw error("the text has no closing '\"'");  // lines may end in it
      append_character(text, parse_character());
    }
    ++at_;
    return text_of(std::move(text));
  }

  ExpressionPtr parse_class() {
    ++at_;
    const bool negated = take("^");
    CharacterSet set;
    while (peek() != ']') {
      if (at_end()) throw error("the class has no closing ']'");
      const char32_t first = parse_character();
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_end()) throw error("the class has no closing ']'");
        last = parse_character();
        if (last < first) throw error("the range of characters runs backwards");
      }
      set.add(first, last);
    }
    ++at_;
    return one_of(negated ? kAnything.without(set) : set);
  }

  ExpressionPtr parse_group(int depth) {
    ++at_;
    skip_space(true);
    ExpressionPtr inside = parse_choice(depth + 1);
    expect(')');
    return inside;
  }

  ExpressionPtr parse_call() {
    const size_t start = at_;
    const std::string name = parse_name();
    first_use_.try_emplace(name, start);
    return call_rule(number_of(name));
  }

  ExpressionPtr parse_token() {
    TokenReference token;
    token.negated = take("!");
    expect('<');
    if (peek() == '[') {
      ++at_;
      token.id = parse_number();
      expect(']');
      expect('>');
      return one_token(std::move(token));
    }
    const size_t close = source_.find('>', at_);
    if (close == source_.npos) throw error("the token has no closing '>'");
    token.name = "<" + std::string(source_.substr(at_, close - at_)) + ">";
    at_ = close + 1;
    return one_token(std::move(token));
  }

  ExpressionPtr parse_repetition(const ExpressionPtr& item) {
    if (take("*")) return repeated(item, 0);
    if (take("+")) return repeated(item, 1);
    if (take("?")) return optional(item);
    if (!take("{")) return {};
    skip_space(true);
    const int64_t least = parse_number();
    int64_t most = least;
    skip_space(true);
    if (take(",")) {
      skip_space(true);
      most = peek() >= '0' && peek() <= '9' ? parse_number() : -1;
      skip_space(true);
    }
    if (most >= 0 && most < least) throw error("{", least, ",", most, "}: the most is below the least");
    expect('}');
    return repeated(item, least, most);
  }

  int64_t parse_number() {
    int64_t number = 0;
    const char* const begin = source_.data() + at_;
    const auto [end, code] = std::from_chars(begin, source_.data() + source_.size(), number);
    if (code != std::errc() || number < 0 || number > 1'000'000)
      throw error("a number from 0 to 1000000 expected");
    at_ += size_t(end - begin);
    return number;
  }

  char32_t parse_character() {
    if (peek() == '\\') return parse_escape();
    const text::Decoded d = text::decode_utf8(source_, at_);
    if (d.code == text::kBadByte) throw error("a byte that is not UTF-8");
    at_ += d.length;
    return d.code;
  }

  char32_t parse_escape() {
    ++at_;
    const char c = peek();
    ++at_;
    switch (c) {
      case 'x':
        return parse_hex(2);
      case 'u':
        return parse_hex(4);
      case 'U':
        return parse_hex(8);
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return char32_t(c);
      default:
        at_ -= 1;
        throw error("unknown escape '\\", c, "'; known: \\n \\r \\t \\\\ \\\" \\[ \\] \\x \\u \\U");
    }
  }

  char32_t parse_hex(size_t digits) {
    uint32_t code = 0;
    const std::string_view word = source_.substr(std::min(at_, source_.size()), digits);
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), code, 16);
    if (status != std::errc() || end != word.data() + digits)
      throw error(digits, " hexadecimal digits expected");
    if (code > CharacterSet::kLast) throw error("the character is above 10FFFF");
    at_ += digits;
    return code;
  }

  static void append_character(std::string& text, char32_t code) {
    // A surrogate is no character; it is spelled as its three bytes would be, which no text of characters holds.
    const std::vector<std::vector<ByteRange>> sequences = byte_sequences({{code, code}});
    for (const ByteRange r : sequences[0]) text.push_back(char(r.first));
  }

  std::string_view source_;
  size_t at_ = 0;
  RuleSet rules_;
  std::map<std::string, int> numbers_;
  std::map<std::string, size_t> first_use_;
};

}  // namespace

RuleSet parse_gbnf(std::string_view source, std::string_view root) { return Parser(source).parse(root); }

}  // namespace rlx::llm
