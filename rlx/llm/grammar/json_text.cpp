#include "rlx/llm/grammar/json_text.h"

#include <map>

#include "rlx/base/json_write.h"
#include "rlx/llm/grammar/regular_expression.h"
#include "rlx/text/unicode.h"

namespace rlx::llm {

namespace {

const CharacterSet kMustEscape{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};

CharacterSet plain_characters() { return CharacterSet::all().without(kMustEscape); }

}  // namespace

ExpressionPtr json_space() {
  static const ExpressionPtr space = optional(any_of(
      {text_of(" "), in_sequence({text_of("\n"), repeated(one_of({{' ', ' '}, {'\t', '\t'}}), 0, 20)})}));
  return space;
}

ExpressionPtr json_character(const CharacterSet& set) {
  std::vector<ExpressionPtr> ways;
  if (const CharacterSet plain = set.both(plain_characters()); !plain.empty()) ways.push_back(one_of(plain));
  const CharacterSet escaped = set.both(kMustEscape);
  for (const CharacterSet::Range& r : escaped.ranges())
    for (char32_t c = r.first; c <= r.last; ++c) {
      std::string quoted = json_quote(std::string(1, char(c)));
      ways.push_back(text_of(quoted.substr(1, quoted.size() - 2)));
    }
  return any_of(std::move(ways));
}

ExpressionPtr json_any_character() {
  const CharacterSet hex{{'0', '9'}, {'a', 'f'}, {'A', 'F'}};
  // \u of a character that is no half of a pair: the first digit is no D, or the second is below 8.
  const ExpressionPtr code = any_of(
      {in_sequence({one_of(hex.without({{'d', 'd'}, {'D', 'D'}})), repeated(one_of(hex), 3, 3)}),
       in_sequence({one_of({{'d', 'd'}, {'D', 'D'}}), one_of({{'0', '7'}}), repeated(one_of(hex), 2, 2)})});
  return any_of({one_of(plain_characters()),
                 in_sequence({text_of("\\"), any_of({one_of(CharacterSet::of(U"\"\\/bfnrt")),
                                                     in_sequence({text_of("u"), code})})})});
}

namespace {

// Names by their first character: what differs somewhere from all of them. `length`: characters read so far.
ExpressionPtr rest_except(const std::vector<std::u32string>& names, size_t length) {
  std::map<char32_t, std::vector<std::u32string>> by_next;
  bool is_name = false;
  for (const std::u32string& name : names) {
    if (name.size() == length)
      is_name = true;
    else
      by_next[name[length]].push_back(name);
  }
  CharacterSet others = plain_characters();
  std::vector<ExpressionPtr> ways;
  for (const auto& [c, same] : by_next) {
    others = others.without({{c, c}});
    if (!plain_characters().has(c)) continue;  // written with an escape, which these strings have none of
    ways.push_back(in_sequence({one_of({{c, c}}), rest_except(same, length + 1)}));
  }
  ways.push_back(in_sequence({one_of(others), repeated(one_of(plain_characters()), 0)}));
  if (!is_name) ways.push_back(text_of(""));
  return any_of(std::move(ways));
}

}  // namespace

ExpressionPtr json_string_except(const std::vector<std::string>& names) {
  std::vector<std::u32string> codes;
  for (const std::string& name : names) {
    std::u32string& code = codes.emplace_back();
    for (size_t i = 0; i < name.size();) {
      const text::Decoded d = text::decode_utf8(name, i);
      code.push_back(d.code);
      i += d.length;
    }
  }
  return in_sequence({text_of("\""), rest_except(codes, 0), text_of("\"")});
}

namespace {

struct Format {
  std::string_view name, pattern;
};
// Strict parts of what RFC 3339, 4122, 5321, 2673, 4291, 3986 and 6901 allow: every text that fits is one of the format. Days 29 to 31
// appear in months that have them in every year.
#define RLX_DATE \
  "([0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31))"
#define RLX_TIME \
  "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))"
#define RLX_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define RLX_HOST "([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?){0,3})"
#define RLX_MAIL "[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,16}){0,2}@" RLX_HOST
#define RLX_PATH "(/[A-Za-z0-9._~-]{0,64}){0,8}(\\?[A-Za-z0-9._~=&-]{0,64})?(#[A-Za-z0-9._~-]{0,32})?"
constexpr Format kFormats[] = {
    {"date", RLX_DATE},
    {"time", RLX_TIME},
    {"date-time", RLX_DATE "T" RLX_TIME},
    {"duration",
     "P([0-9]{1,6}W|[0-9]{1,6}D(T[0-9]{1,6}H)?|[0-9]{1,6}Y([0-9]{1,6}M([0-9]{1,6}D)?)?|T[0-9]{1,6}[HMS])"},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"ipv4", RLX_BYTE "(\\." RLX_BYTE "){3}"},
    {"ipv6", "([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|::([0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4}"},
    {"hostname", RLX_HOST},
    {"idn-hostname", RLX_HOST},
    {"email", RLX_MAIL},
    {"idn-email", RLX_MAIL},
    {"uri", "https?://" RLX_HOST RLX_PATH},
    {"iri", "https?://" RLX_HOST RLX_PATH},
    {"uri-reference", "(https?://" RLX_HOST ")?" RLX_PATH},
    {"iri-reference", "(https?://" RLX_HOST ")?" RLX_PATH},
    {"uri-template", "https?://" RLX_HOST "(/([A-Za-z0-9._~-]{0,64}|\\{[A-Za-z0-9_]{1,32}\\})){0,8}"},
    {"json-pointer", "(/[A-Za-z0-9_-]{0,64}){0,8}"},
    {"relative-json-pointer", "(0|[1-9][0-9]{0,2})(#|(/[A-Za-z0-9_-]{0,64}){0,8})"},
    {"regex", "\\^?[A-Za-z0-9 _-]{0,64}\\$?"},
};
#undef RLX_DATE
#undef RLX_TIME
#undef RLX_BYTE
#undef RLX_HOST
#undef RLX_MAIL
#undef RLX_PATH

}  // namespace

ExpressionPtr json_format(std::string_view name) {
  for (const Format& f : kFormats)
    if (f.name == name) return parse_regular_expression(f.pattern);
  return {};
}

}  // namespace rlx::llm
