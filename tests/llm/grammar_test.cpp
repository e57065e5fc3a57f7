// Grammars in GBNF and as regular expressions: masks over a real vocabulary, and texts that fit or do not.
#include <gtest/gtest.h>

#include <ctime>

#include "rlx/io/model_text.h"
#include "rlx/llm/grammar/matcher.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

std::shared_ptr<const TokenTrie> bytes_alone() {
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b) bytes.emplace_back(1, char(b));
  bytes.emplace_back();
  return std::make_shared<const TokenTrie>(std::move(bytes), std::vector<TokenId>{256});
}

bool fits(const Grammar& grammar, std::string_view text) {
  GrammarMatcher m(std::make_shared<const Grammar>(grammar), bytes_alone());
  return m.accept_text(text) && m.may_end();
}
bool fits_gbnf(const std::string& gbnf, std::string_view text) {
  return fits(Grammar::from_gbnf(gbnf), text);
}
bool fits_regex(const std::string& pattern, std::string_view text) {
  return fits(Grammar::from_regex(pattern), text);
}

bool allowed(std::span<const uint32_t> mask, TokenId id) { return mask[size_t(id) / 32] >> (id % 32) & 1; }

TEST(Grammar, MasksOfEveryStoredWalk) {
  RLX_REQUIRE_DATA("grammar.json");
  const Json data = Json::read(test::data_path("grammar.json"));
  std::vector<TokenId> ends;
  for (const JsonView& id : data.at("end").items()) ends.push_back(TokenId(id.integer()));
  const auto tokens = std::make_shared<const TokenTrie>(
      io::load_tokenizer(test::data_path(std::string(data.at("model").string()))), ends);
  int masks = 0;
  for (const JsonView& c : data.at("cases").items()) {
    const auto grammar = std::make_shared<const Grammar>(Grammar::from_gbnf(c.at("gbnf").string()));
    for (const JsonView& step : c.at("steps").items()) {
      GrammarMatcher m(grammar, tokens);
      for (const JsonView& id : step.at("taken").items()) m.accept(TokenId(id.integer()));
      const bool listed = step.find("allowed").has_value();
      std::vector<bool> expected(tokens->vocab_size(), !listed);
      for (const JsonView& id : step.at(listed ? "allowed" : "forbidden").items())
        expected[size_t(id.integer())] = listed;
      EXPECT_EQ(m.may_end(), step.at("may_end").boolean()) << c.at("name").string();
      const auto mask = m.mask();
      for (TokenId id = 0; size_t(id) < tokens->vocab_size(); ++id)
        EXPECT_EQ(allowed(mask, id), expected[size_t(id)])
            << c.at("name").string() << " after '" << step.at("text").string() << "' token " << id;
      ++masks;
    }
  }
  EXPECT_GT(masks, 50);
}

TEST(Gbnf, Syntax) {
  EXPECT_TRUE(fits_gbnf("root ::= \"a\" # comment\n  | \"b\"", "b"));
  EXPECT_TRUE(fits_gbnf("# first\n\nroot ::=\n  (\"a\" |\n   \"b\" # why\n  )+ end\nend ::= \".\"", "abba."));
  EXPECT_TRUE(fits_gbnf(R"(root ::= "\x41\u00e9\U0001F600\t\"\\")", "A\xC3\xA9\xF0\x9F\x98\x80\t\"\\"));
  EXPECT_TRUE(fits_gbnf(R"(root ::= [\]\[a-c\-]{2,})", "[]-b"));
  EXPECT_TRUE(fits_gbnf("root ::= [a-]+", "a-a"));
  EXPECT_TRUE(fits_gbnf("root ::= \"a\"{3}", "aaa"));
  EXPECT_FALSE(fits_gbnf("root ::= \"a\"{3}", "aa"));
  EXPECT_FALSE(fits_gbnf("root ::= \"a\"{3}", "aaaa"));
  EXPECT_TRUE(fits_gbnf("root ::= (\"a\" \"b\"?){ 0 , 2 }", "aba"));
  EXPECT_FALSE(fits_gbnf("root ::= (\"a\" \"b\"?){0,2}", "aaa"));
  EXPECT_TRUE(fits_gbnf("root ::= .", "\xE2\x82\xAC"));
  EXPECT_FALSE(fits_gbnf("root ::= .", "ab"));
  EXPECT_TRUE(fits_gbnf("root ::= \"a\" | \"\"", ""));
  EXPECT_TRUE(fits_gbnf("root ::= a-1\na-1 ::= \"x\" a-1 | \"y\"", "xxxxy"));
}

TEST(Gbnf, MistakesAreNamedWithTheirPlace) {
  const auto message = [](const char* gbnf) { return test::message_of([&] { Grammar::from_gbnf(gbnf); }); };
  EXPECT_EQ(message("root ::= other"), "gbnf: line 1 column 10: rule 'other' is not defined");
  EXPECT_EQ(message("start ::= \"a\""), "gbnf: there is no rule 'root' to start with");
  EXPECT_EQ(message("root ::= \"a\nb\" [c\nd]"), "no error");  // lines may end inside of texts and classes
  EXPECT_EQ(message("root ::= \"a"), "gbnf: line 1 column 12: the text has no closing '\"'");
  EXPECT_EQ(message("root ::= \"a\"\nroot ::= \"b\""), "gbnf: line 2 column 1: rule 'root' is defined twice");
  EXPECT_EQ(message("root ::= \"a\"{3,2}"), "gbnf: line 1 column 17: {3,2}: the most is below the least");
  EXPECT_EQ(
      message("root ::= root \"a\" | \"b\""),
      "gbnf: rule 'root' may call itself before it has read anything (left recursion); write it as a repetition");
  EXPECT_EQ(
      message("root ::= ws root \"a\"\nws ::= \" \"?"),
      "gbnf: rule 'root' may call itself before it has read anything (left recursion); write it as a repetition");
  EXPECT_EQ(message("root ::= \"a\" root"), "gbnf: no text fits this grammar");
  EXPECT_EQ(message("root ::= (\"a\""), "gbnf: line 1 column 14: ')' expected");
}

// Each rule calls the next twice, and the last may be empty: 2^60 ways to have read nothing.
TEST(Gbnf, RulesThatDoubleAreRefusedAndDoNotFillTheMemory) {
  std::string source = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) source += cat("r", i, " ::= r", i + 1, " r", i + 1, "\n");
  source += "r60 ::= \"a\"?\n";
  try {
    GrammarMatcher(std::make_shared<const Grammar>(Grammar::from_gbnf(source)), bytes_alone());
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user);
    EXPECT_EQ(std::string(e.message()).find("grammar: a text can be read in more than 65536 ways at once"),
              0u)
        << e.message();
  }
}

// Each part may be empty, so that a byte may belong to any of them.
TEST(Regex, RepetitionsOfWhatMayBeEmptyTakeTimeInProportion) {
  const auto grammar = std::make_shared<const Grammar>(Grammar::from_regex("(a*[bc]*){2000}Y"));
  GrammarMatcher m(grammar, bytes_alone());
  const std::clock_t begin = std::clock();
  for (int step = 0; step < 4; ++step) {
    EXPECT_TRUE(allowed(m.mask(), 'a') && allowed(m.mask(), 'Y') && !allowed(m.mask(), 'd'));
    m.accept('a');
  }
  EXPECT_TRUE(m.accept_text("bcY"));
  EXPECT_TRUE(m.may_end());
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 10.0);
}

// The way to the end runs through every choice.
TEST(Regex, ChoicesInARowTakeTimeInProportion) {
  const std::clock_t begin = std::clock();
  const auto grammar = std::make_shared<const Grammar>(Grammar::from_regex("(ab|cde|f){20000}Y"));
  GrammarMatcher m(grammar, bytes_alone());
  EXPECT_EQ(m.bytes_to_end(), 20001);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 5.0);
}

TEST(Gbnf, NamedTokens) {
  const auto grammar = std::make_shared<const Grammar>(Grammar::from_gbnf("root ::= <[65]> !<[66]>* \"c\""));
  GrammarMatcher m(grammar, bytes_alone());
  EXPECT_TRUE(allowed(m.mask(), 65));
  EXPECT_FALSE(allowed(m.mask(), 66));
  m.accept(65);
  EXPECT_FALSE(allowed(m.mask(), 66));
  EXPECT_TRUE(allowed(m.mask(), 255));
  EXPECT_TRUE(allowed(m.mask(), 'c'));
}

TEST(Regex, Syntax) {
  EXPECT_TRUE(fits_regex("^[a-c]+(?:d|e){2}$", "abcde"));
  EXPECT_FALSE(fits_regex("[a-c]+", "abx"));
  EXPECT_TRUE(fits_regex(R"(\d{3}-\w+\s\S)", "123-a_1 x"));
  EXPECT_TRUE(fits_regex(R"([^\d\s]+)", "ab"));
  EXPECT_FALSE(fits_regex(R"([^\d\s]+)", "a1"));
  EXPECT_TRUE(fits_regex(R"(\u00e9\x41\.)",
                         "\xC3\xA9"
                         "A."));
  EXPECT_TRUE(fits_regex(R"(\p{L}+)", "\xC3\xA9t\xC3\xA9"));
  EXPECT_FALSE(fits_regex(".", "\n"));
  EXPECT_TRUE(fits_regex("a|b|", ""));
  EXPECT_TRUE(fits_regex("(?<year>[0-9]{4}?)", "2024"));
  for (const char* pattern :
       {"(?=a)", "(a)\\1", "\\c", "[\\c", "a\\b", "a^b", "a++", "*a", "(a", "a)", "[a", "\\q", "[b-a]"})
    EXPECT_THROW(Grammar::from_regex(pattern), Error) << pattern;
}

TEST(Matcher, LeavesOutWhatCannotBeFinishedInTime) {
  const auto grammar = std::make_shared<const Grammar>(
      Grammar::from_gbnf("root ::= \"[\" value (\",\" value)* \"]\"\nvalue ::= root | [0-9]"));
  GrammarMatcher m(grammar, bytes_alone());
  EXPECT_EQ(m.bytes_to_end(), 3);
  m.accept('[');
  EXPECT_TRUE(allowed(m.mask(), '['));
  EXPECT_TRUE(allowed(m.mask(4), '['));
  EXPECT_FALSE(allowed(m.mask(3), '['));
  m.accept('7');
  EXPECT_TRUE(allowed(m.mask(3), ','));
  EXPECT_FALSE(allowed(m.mask(2), ','));
  EXPECT_TRUE(allowed(m.mask(1), ']'));
}

TEST(Matcher, RefusesTokensThatMayNotFollow) {
  GrammarMatcher m(std::make_shared<const Grammar>(Grammar::from_gbnf("root ::= \"a\"")), bytes_alone());
  EXPECT_EQ(test::message_of([&] { m.accept('b'); }), "grammar: token 98 may not follow here");
  m.accept('a');
  m.accept(256);
  EXPECT_TRUE(m.ended());
  EXPECT_EQ(test::message_of([&] { m.accept('a'); }), "grammar: token 97 follows the end of the text");
}

// Right recursion and long texts keep the number of states small.
TEST(Matcher, LongTextsStayInFewStates) {
  const auto grammar = std::make_shared<const Grammar>(
      Grammar::from_gbnf("root ::= item root | \".\"\nitem ::= \"(\" [a-z]* \")\""));
  MatchStates states(std::shared_ptr<const Automaton>(grammar, &grammar->automaton()));
  int32_t at = states.start();
  for (int i = 0; i < 1000; ++i)
    for (const char c : std::string_view("(abc)"))
      ASSERT_NE(at = states.after_byte(at, static_cast<unsigned char>(c)), MatchStates::kDead);
  EXPECT_LT(states.size(), 10u);
}

}  // namespace
}  // namespace rlx::llm
