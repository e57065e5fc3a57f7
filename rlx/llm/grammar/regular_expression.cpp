#include "rlx/llm/grammar/regular_expression.h"

#include <charconv>

#include "rlx/base/error.h"
#include "rlx/text/unicode.h"

namespace rlx::llm {

namespace {

constexpr int kMaxDepth = 200;

const CharacterSet kDigits{{'0', '9'}};
const CharacterSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharacterSet kSpace{{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                          {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                          {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharacterSet kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

// Characters whose class has one of the bits.
CharacterSet with_class(uint8_t bits) {
  const text::CharClasses classes;
  CharacterSet set;
  char32_t first = 0;
  bool inside = false;
  for (char32_t c = 0; c <= CharacterSet::kLast + 1; ++c) {
    const bool has = c <= CharacterSet::kLast && (classes[c] & bits) != 0;
    if (has && !inside) first = c;
    if (!has && inside) set.add(first, c - 1);
    inside = has;
  }
  return set.both(CharacterSet::all());
}

struct NamedClass {
  std::string_view name, long_name;
  uint8_t bits;
};
constexpr NamedClass kNamedClasses[] = {{"L", "Letter", text::kLetter},
                                        {"N", "Number", text::kNumber},
                                        {"P", "Punctuation", text::kPunctuation},
                                        {"M", "Mark", text::kMark},
                                        {"Mn", "Nonspacing_Mark", text::kNonspacing},
                                        {"White_Space", "White_Space", text::kSpace}};

class Parser {
 public:
  Parser(std::string_view pattern, RegexScope scope)
      : pattern_(pattern), search_(scope == RegexScope::part) {}

  ExpressionPtr parse() {
    ExpressionPtr whole = parse_choice(0, true, true);
    if (at_ < pattern_.size()) throw error("')' without '('");
    return whole;
  }

 private:
  template <class... Args>
  Error error(const Args&... what) const {
    return invalid("regular expression '", pattern_, "': column ", at_ + 1, ": ", what...);
  }
  bool at_end() const { return at_ >= pattern_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  bool take(std::string_view word) {
    if (!pattern_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  static ExpressionPtr anything() { return repeated(one_of(CharacterSet::all()), 0); }

  // `first` and `last`: whether the choice stands at the start and the end of the pattern, where anchors may be.
  ExpressionPtr parse_choice(int depth, bool first, bool last) {
    if (depth > kMaxDepth) throw error("more than ", kMaxDepth, " groups in each other");
    std::vector<ExpressionPtr> parts;
    do parts.push_back(parse_sequence(depth, first, last));
    while (take("|"));
    return any_of(std::move(parts));
  }

  ExpressionPtr parse_sequence(int depth, bool first, bool last) {
    std::vector<ExpressionPtr> parts;
    bool open_start = search_ && first && depth == 0, open_end = search_ && last && depth == 0;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (take("^")) {
        if (!first || !parts.empty()) throw error("'^' inside of the pattern");
        open_start = false;
        continue;
      }
      if (take("$")) {
        if (!last || (!at_end() && peek() != '|' && peek() != ')')) throw error("'$' inside of the pattern");
        open_end = false;
        continue;
      }
      // An anchor inside of a group is sound where the group is the whole alternative.
      const bool alone = peek() == '(' && parts.empty() && group_is_last();
      ExpressionPtr item = parse_item(depth, first && alone && !open_start, last && alone && !open_end);
      while (ExpressionPtr more = parse_repetition(item)) item = std::move(more);
      parts.push_back(std::move(item));
    }
    if (open_start) parts.insert(parts.begin(), anything());
    if (open_end) parts.push_back(anything());
    return in_sequence(std::move(parts));
  }

  // Whether the group that opens here is followed by the end of its alternative.
  bool group_is_last() const {
    int open = 0;
    bool in_class = false;
    for (size_t i = at_; i < pattern_.size(); ++i) {
      const char c = pattern_[i];
      if (c == '\\')
        ++i;
      else if (in_class)
        in_class = c != ']';
      else if (c == '[')
        in_class = true;
      else if (c == '(')
        ++open;
      else if (c == ')' && --open == 0)
        return i + 1 == pattern_.size() || pattern_[i + 1] == '|' || pattern_[i + 1] == ')' ||
               pattern_[i + 1] == '$';
    }
    return false;
  }

  ExpressionPtr parse_item(int depth, bool first, bool last) {
    const char c = peek();
    if (c == '(') return parse_group(depth, first, last);
    if (c == '[') return one_of(parse_class());
    if (take(".")) return one_of(CharacterSet::all().without(kLineEnds));
    if (c == '*' || c == '+' || c == '?') throw error("'", c, "' repeats nothing");
    if (c == '\\') return one_of(parse_escape(false));
    const char32_t code = parse_plain();
    return one_of(single(code));
  }

  ExpressionPtr parse_group(int depth, bool first, bool last) {
    ++at_;
    if (take("?")) {
      if (take("<") && peek() != '=' && peek() != '!') {
        const size_t close = pattern_.find('>', at_);
        if (close == pattern_.npos) throw error("the name of the group has no closing '>'");
        at_ = close + 1;
      } else if (!take(":")) {
        throw error("look-around and flags are not regular; a group is (...), (?:...) or (?<name>...)");
      }
    }
    ExpressionPtr inside = parse_choice(depth + 1, first, last);
    if (!take(")")) throw error("the group has no closing ')'");
    return inside;
  }

  ExpressionPtr parse_repetition(const ExpressionPtr& item) {
    ExpressionPtr out;
    if (take("*"))
      out = repeated(item, 0);
    else if (take("+"))
      out = repeated(item, 1);
    else if (take("?"))
      out = optional(item);
    else if (peek() == '{' && peek(1) >= '0' && peek(1) <= '9')
      out = parse_counts(item);
    else
      return {};
    if (peek() == '+') throw error("possessive repetition is not regular");
    take("?");  // lazy: the same texts
    return out;
  }

  ExpressionPtr parse_counts(const ExpressionPtr& item) {
    ++at_;
    const int64_t least = parse_number();
    int64_t most = least;
    if (take(",")) most = peek() == '}' ? -1 : parse_number();
    if (!take("}")) throw error("the repetition has no closing '}'");
    if (most >= 0 && most < least) throw error("{", least, ",", most, "}: the most is below the least");
    return repeated(item, least, most);
  }

  int64_t parse_number() {
    int64_t number = 0;
    const char* const begin = pattern_.data() + at_;
    const auto [end, code] = std::from_chars(begin, pattern_.data() + pattern_.size(), number);
    if (code != std::errc() || number < 0 || number > 1'000'000)
      throw error("a number from 0 to 1000000 expected");
    at_ += size_t(end - begin);
    return number;
  }

  char32_t parse_plain() {
    if (at_end()) throw error("the pattern ends where a character is expected");
    const text::Decoded d = text::decode_utf8(pattern_, at_);
    if (d.code == text::kBadByte) throw error("a byte that is not UTF-8");
    at_ += d.length;
    return d.code;
  }

  CharacterSet parse_class() {
    ++at_;
    const bool negated = take("^");
    CharacterSet set;
    while (peek() != ']') {
      if (at_end()) throw error("the class has no closing ']'");
      const CharacterSet one = parse_class_item();
      const bool single = one.ranges().size() == 1 && one.ranges()[0].first == one.ranges()[0].last;
      if (peek() != '-' || peek(1) == ']' || peek(1) == '\0' || !single) {
        set.add(one);
        continue;
      }
      ++at_;
      const CharacterSet other = parse_class_item();
      if (other.ranges().size() != 1 || other.ranges()[0].first != other.ranges()[0].last)
        throw error("a range of characters ends with a class");
      if (other.ranges()[0].first < one.ranges()[0].first)
        throw error("the range of characters runs backwards");
      set.add(one.ranges()[0].first, other.ranges()[0].first);
    }
    ++at_;
    return negated ? CharacterSet::all().without(set) : set.both(CharacterSet::all());
  }

  CharacterSet parse_class_item() {
    if (peek() == '\\') return parse_escape(true);
    const char32_t code = parse_plain();
    return {{code, code}};
  }

  CharacterSet parse_escape(bool in_class) {
    ++at_;
    if (at_end()) throw error("the pattern ends with '\\'");
    const char32_t c = parse_plain();
    const auto complement = [](const CharacterSet& set) { return CharacterSet::all().without(set); };
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement(kSpace);
      case 't':
        return {{'\t', '\t'}};
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
        return single(parse_hex(2));
      case 'u':
        return single(parse_unicode());
      case 'p':
      case 'P':
        return parse_property(c == 'P');
      case 'c':
        return single(parse_plain() & 31);
      case '0':
        return {{0, 0}};
      case 'b':
        if (in_class) return {{'\b', '\b'}};
        [[fallthrough]];
      case 'B':
        throw error("a word boundary is not supported");
      default:
        break;
    }
    if ((c >= '1' && c <= '9') || c == 'k') throw error("a back reference is not regular");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) throw error("unknown escape '\\", char(c), "'");
    return single(c);
  }

  static CharacterSet single(char32_t c) { return {{c, c}}; }

  char32_t parse_hex(size_t digits) {
    uint32_t code = 0;
    const std::string_view word = pattern_.substr(at_, digits);
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), code, 16);
    if (status != std::errc() || end != word.data() + word.size() || word.size() != digits)
      throw error(digits, " hexadecimal digits expected");
    at_ += digits;
    return code;
  }

  char32_t parse_unicode() {
    char32_t code = 0;
    if (take("{")) {
      const size_t close = pattern_.find('}', at_);
      if (close == pattern_.npos || close == at_ || close - at_ > 6)
        throw error("1 to 6 hexadecimal digits and '}' expected");
      code = parse_hex(close - at_);
      ++at_;
    } else {
      code = parse_hex(4);
      if (code >= 0xD800 && code < 0xDC00 && peek() == '\\' && peek(1) == 'u') {  // a pair for one character
        at_ += 2;
        code = 0x10000 + ((code - 0xD800) << 10) + (parse_hex(4) - 0xDC00);
      }
    }
    if (code > CharacterSet::kLast) throw error("the character is above 10FFFF");
    return code;
  }

  CharacterSet parse_property(bool negated) {
    std::string_view name;
    if (take("{")) {
      const size_t close = pattern_.find('}', at_);
      if (close == pattern_.npos) throw error("the property has no closing '}'");
      name = pattern_.substr(at_, close - at_);
      at_ = close + 1;
    } else {
      name = pattern_.substr(at_, 1);
      ++at_;
    }
    for (const NamedClass& c : kNamedClasses)
      if (name == c.name || name == c.long_name) {
        const CharacterSet set = with_class(c.bits);
        return negated ? CharacterSet::all().without(set) : set;
      }
    throw error("unknown property '", name, "'; known: L, N, P, M, Mn, White_Space");
  }

  std::string_view pattern_;
  bool search_;
  size_t at_ = 0;
};

}  // namespace

ExpressionPtr parse_regular_expression(std::string_view pattern, RegexScope scope) {
  return Parser(pattern, scope).parse();
}

}  // namespace rlx::llm
