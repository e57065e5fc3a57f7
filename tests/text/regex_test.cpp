// Patterns in the syntax of Oniguruma; the expected words are those of Hugging Face tokenizers 0.23.3.
#include "rlx/text/regex.h"

#include <gtest/gtest.h>

#include "rlx/base/error.h"

namespace rlx::text {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<Range> found;
  Regex(pattern).find_all(text, {0, uint32_t(text.size())}, found);
  std::vector<std::string> out;
  for (const Range r : found) out.emplace_back(text.substr(r.begin, r.size()));
  return out;
}

using Words = std::vector<std::string>;

TEST(Regex, a_class_in_a_class_is_part_of_it) {
  // The words of BLOOM.
  EXPECT_EQ(matches(" ?[^(\\s|[.,!?…。，、।۔،])]+", "Hello, big (world)! 日本。x"),
            (Words{"Hello", " big", "world", " 日本", "x"}));
  EXPECT_EQ(matches("[a[bc]]+", "aa abd cb]"), (Words{"aa", "ab", "cb"}));
  EXPECT_EQ(matches("[^a[bc]]+", "ad]c"), Words{"d]"});
  EXPECT_EQ(matches("[a[^b-z]]+", "aAb1x"), (Words{"aA", "1"}));
  EXPECT_EQ(matches("[^a[^b-z]]+", "aAbx1"), Words{"bx"});
}

TEST(Regex, two_ampersands_are_what_both_sides_have) {
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "abcde F"), (Words{"bcd"}));
  EXPECT_EQ(matches("[^a-z&&[^aeiou]]+", "abcde F"), (Words{"a", "e F"}));
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab中文é1"), (Words{"ab", "é"}));
  EXPECT_EQ(matches("[a&&b]", "a&b"), Words{});
}

TEST(Regex, the_others_of_a_set_may_stand_in_a_class) {
  EXPECT_EQ(matches(R"([^\W\d_]+)", "e\u0301a_b1c"), (Words{"e\u0301a", "b", "c"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \t\n\u180Eb"), Words{" \t"});
  EXPECT_EQ(matches(R"([\W_]+)", "a_-b\u0301c"), Words{"_-"});
  EXPECT_EQ(matches(R"([^\W\H]+)", "afg1"), (Words{"af", "1"}));
}

TEST(Regex, numbers_of_latin_1_are_words_outside_of_a_class_only) {
  EXPECT_EQ(matches(R"(\w+)", "a½ ²"), (Words{"a½", "²"}));
  EXPECT_EQ(matches(R"([\w]+)", "a½ ²"), Words{"a"});
}

TEST(Regex, names_of_posix_follow_unicode) {
  EXPECT_EQ(matches("[[:punct:]]+", "a$♥x¡_"), (Words{"$♥", "¡_"}));
  EXPECT_EQ(matches("[[:^punct:]]+", "a$♥x¡_"), (Words{"a", "x"}));
  EXPECT_EQ(matches(R"(\p{Punct}+)", "a$♥x¡_"), Words{"¡_"});
  EXPECT_EQ(matches("[[:word:]]+", "e\u0301_1 x"), (Words{"e\u0301_1", "x"}));
  EXPECT_EQ(matches("[^[:alpha:][:space:]]+", "ab 1\u0345\u0301"), (Words{"1", "\u0301"}));
  EXPECT_EQ(matches(R"(\p{Alnum}+)", "é1²"), Words{"é1"});
  EXPECT_EQ(matches(R"(\P{^Letter}+)", "ab1é"), (Words{"ab", "é"}));
  EXPECT_EQ(matches(R"(\p{Uppercase_Letter})", "aBÉ"), (Words{"B", "É"}));
}

TEST(Regex, both_ends_are_those_of_lines) {
  EXPECT_EQ(matches("^.", "ab\ncd\n"), (Words{"a", "c"}));
  EXPECT_EQ(matches(".$", "ab\ncd\n"), (Words{"b", "d"}));
  EXPECT_EQ(matches(R"(\A.|.\z)", "ab\ncd"), (Words{"a", "d"}));
}

TEST(Regex, the_option_m_lets_the_dot_match_line_ends) {
  EXPECT_EQ(matches(".+", "a\nb"), (Words{"a", "b"}));
  EXPECT_EQ(matches("(?m).+", "a\nb"), Words{"a\nb"});
  EXPECT_EQ(matches("(?mi:A.)", "a\n"), Words{"a\n"});
}

TEST(Regex, escapes_that_pcre2_reads_otherwise) {
  EXPECT_EQ(matches(R"(\h+)", "xaFg 09"), (Words{"aF", "09"}));
  EXPECT_EQ(matches(R"(\v)", "\n\v\r"), Words{"\v"});
  EXPECT_EQ(matches(R"([\u4e00-\u9fff]+|\u0041)", "A中文B"), (Words{"A", "中文"}));
  EXPECT_EQ(matches("a{,2}b", "aaab b"), (Words{"aab", "b"}));
}

TEST(Regex, a_class_without_an_end_is_refused) {
  EXPECT_THROW(Regex("[a"), Error);
  EXPECT_THROW(Regex("[a[b]"), Error);
  EXPECT_THROW(Regex(std::string(5000, '[') + "a" + std::string(5000, ']')), Error);
}

}  // namespace
}  // namespace rlx::text
