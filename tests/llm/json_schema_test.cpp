// JSON schemas as grammars: texts that fit or do not, and texts drawn at random, which must parse and be valid.
#include <gtest/gtest.h>

#include <random>

#include "rlx/llm/grammar/matcher.h"
#include "rlx/text/unicode.h"
#include "tests/llm/json_validator.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

std::shared_ptr<const Grammar> grammar_of(const std::string& schema) {
  return std::make_shared<const Grammar>(Grammar::from_json_schema(Json::parse(schema, "schema")));
}

// Bytes and some longer tokens.
std::shared_ptr<const TokenTrie> tokens() {
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b) bytes.emplace_back(1, char(b));
  for (const char* word :
       {"{\"", "\":", "\": ", ", \"", "\"}", "true", "null", "12", "3.5", "name", "\xC3\xA9", "[[", "}]"})
    bytes.emplace_back(word);
  bytes.emplace_back();
  const auto end = TokenId(bytes.size()) - 1;
  return std::make_shared<const TokenTrie>(std::move(bytes), std::vector<TokenId>{end});
}

bool fits(const std::string& schema, std::string_view text) {
  GrammarMatcher m(grammar_of(schema), tokens());
  return m.accept_text(text) && m.may_end();
}

// A text of at most `budget` tokens drawn with equal chances.
std::string draw(GrammarMatcher m, const TokenTrie& trie, std::mt19937& random, int64_t budget) {
  std::string text;
  for (; budget > 0; --budget) {
    const auto mask = m.mask(budget);
    std::vector<TokenId> allowed;
    for (TokenId id = 0; size_t(id) < trie.vocab_size(); ++id)
      if (mask[size_t(id) / 32] >> (id % 32) & 1) allowed.push_back(id);
    if (allowed.empty()) break;
    const TokenId id = allowed[random() % allowed.size()];
    m.accept(id);
    if (m.ended()) return text;
    text += trie.bytes(id);
  }
  EXPECT_TRUE(m.may_end()) << text;
  return text;
}

TEST(JsonSchema, DrawnTextsAreValid) {
  std::mt19937 random(7);
  const auto trie = tokens();
  int texts = 0;
  for (const char* schema : test::kSchemas) {
    const Json document = Json::parse(schema, "schema");
    const GrammarMatcher m(grammar_of(schema), trie);
    for (int i = 0; i < 80; ++i, ++texts) {
      const std::string text = draw(m, *trie, random, 40 + i);
      ASSERT_TRUE(text::is_valid_utf8(text)) << schema << "\n" << text;
      Json value;
      ASSERT_NO_THROW(value = Json::parse(text, "text")) << schema << "\n" << text;
      EXPECT_TRUE(test::Validator(document).valid(document, value)) << schema << "\n" << text;
    }
  }
  EXPECT_GE(texts, 1000);
}

TEST(JsonSchema, TextsThatFit) {
  const std::string person = test::kSchemas[0];
  EXPECT_TRUE(fits(person, R"({"name": "Ann", "age": 42})"));
  EXPECT_TRUE(fits(person, "{\n  \"name\":\"\\u00e9\\n\",\n  \"age\":0,\n  \"tags\":[\"a\", \"b\"]\n}"));
  EXPECT_FALSE(fits(person, R"({"name": "Ann", "age": 151})"));
  EXPECT_FALSE(fits(person, R"({"name": "Ann"})"));
  EXPECT_FALSE(fits(person, R"({"name": "Ann", "age": 1, "x": 2})"));
  EXPECT_TRUE(fits(R"({"const":null})", "null"));
  EXPECT_FALSE(fits(R"({"type":"integer"})", "01"));
  EXPECT_FALSE(fits(R"({"type":"string"})", "\"\n\""));
  EXPECT_TRUE(fits(R"({"type":"string","format":"date"})", "\"2024-02-28\""));
  EXPECT_FALSE(fits(R"({"type":"string","format":"date"})", "\"2024-02-30\""));
  EXPECT_TRUE(fits(R"({"type":"string","enum":["a","b",3]})", "\"b\""));
  EXPECT_FALSE(fits(R"({"type":"string","enum":["a","b",3]})", "3"));
  // A further member never repeats the name of a property.
  const char* open = R"({"type":"object","properties":{"name":{"type":"string"},"none":{"type":"null"}}})";
  EXPECT_TRUE(fits(open, R"({"nam":1,"names":2,"x":[{}]})"));
  EXPECT_FALSE(fits(open, R"({"name":1})"));
  EXPECT_FALSE(fits(open, R"({"x":1,"name":"a"})"));
}

// A member that is refused is none of the further ones either.
TEST(JsonSchema, MembersThatMustNotBeThere) {
  const char* none = R"({"type":"object","properties":{"a":false,"b":{"type":"null"}}})";
  EXPECT_TRUE(fits(none, R"({"b":null,"c":1})"));
  EXPECT_FALSE(fits(none, R"({"a":1})"));
  EXPECT_FALSE(fits(none, R"({"b":null,"a":1})"));
  const char* names = R"({"type":"object","properties":{"ab":{"type":"null"},"b":{"type":"null"}},
                          "propertyNames":{"anyOf":[{"pattern":"^a"},{"const":"c"}]}})";
  EXPECT_TRUE(fits(names, R"({"ab":null})"));
  EXPECT_FALSE(fits(names, R"({"b":null})"));
  EXPECT_FALSE(fits(names, R"({"ab":null,"b":null})"));
  EXPECT_EQ(test::message_of(
                [] { grammar_of(R"({"type":"object","required":["b"],"propertyNames":{"pattern":"^a"}})"); }),
            "json schema: no text fits this grammar");
}

// Listed arrays and objects keep to what else is asked of them.
TEST(JsonSchema, ListedValuesFitTheOtherKeywords) {
  const char* arrays = R"({"enum":[[1],[1,2],[1,"x"],[2,2]],"minItems":2,"uniqueItems":true,
                           "items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}})";
  EXPECT_TRUE(fits(arrays, "[1,2]"));
  for (const char* text : {"[1]", "[1,\"x\"]", "[2,2]"}) EXPECT_FALSE(fits(arrays, text)) << text;
  const char* objects = R"({"enum":[{"a":1},{"a":"x"},{"b":1},{"a":1,"b":2},{"a":1,"c":2}],"required":["a"],
                            "properties":{"a":{"type":"integer"},"b":{"maximum":1}},"additionalProperties":false})";
  EXPECT_TRUE(fits(objects, R"({"a":1})"));
  for (const char* text : {R"({"a":"x"})", R"({"b":1})", R"({"a":1,"b":2})", R"({"a":1,"c":2})"})
    EXPECT_FALSE(fits(objects, text)) << text;
}

// Every format of JSON schema is kept to; names of other origin are notes to readers.
TEST(JsonSchema, Formats) {
  const auto text = [](const char* format, const char* value) {
    return fits(cat(R"({"type":"string","format":")", format, "\"}"), cat("\"", value, "\""));
  };
  EXPECT_TRUE(text("json-pointer", "/a/0/b-c"));
  EXPECT_TRUE(text("json-pointer", ""));
  EXPECT_FALSE(text("json-pointer", "a/b"));
  EXPECT_TRUE(text("relative-json-pointer", "12#"));
  EXPECT_FALSE(text("relative-json-pointer", "/a"));
  EXPECT_TRUE(text("uri-reference", "/a/b?c=d#e"));
  EXPECT_TRUE(text("uri-template", "http://a.b/{id}/c"));
  EXPECT_FALSE(text("uri-template", "http://a.b/{id/c"));
  EXPECT_FALSE(text("iri", "/a"));
  EXPECT_TRUE(text("regex", "^ab$"));
  EXPECT_FALSE(text("regex", "("));
  EXPECT_TRUE(text("password", "any (text"));
  EXPECT_FALSE(fits(R"({"type":"string","format":"file-path","maxLength":2})", "\"abc\""));
  EXPECT_TRUE(fits(R"({"type":"string","format":"path","pattern":"^a"})", "\"abc\""));
}

// As pydantic and OpenAPI write a choice of classes.
TEST(JsonSchema, WordsOfOpenApiRestrictNothing) {
  const char* pets =
      R"({"discriminator":{"propertyName":"kind","mapping":{"cat":"#/$defs/Cat","dog":"#/$defs/Dog"}},
      "oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}],
      "$defs":{"Cat":{"type":"object","properties":{"kind":{"const":"cat"},"lives":{"type":"integer","nullable":true}},
                      "required":["kind"],"additionalProperties":false},
               "Dog":{"type":"object","properties":{"kind":{"const":"dog"}},"required":["kind"]}}})";
  EXPECT_TRUE(fits(pets, R"({"kind":"cat","lives":9})"));
  EXPECT_TRUE(fits(pets, R"({"kind":"dog","x":1})"));
  EXPECT_FALSE(fits(pets, R"({"kind":"dogs"})"));
}

TEST(JsonSchema, ReferencesAreSpelledAsInUris) {
  const char* schema =
      R"({"$ref":"#/definitions/List%5Bx~1y%5D%20","definitions":{"List[x/y] ":{"type":"null"}}})";
  EXPECT_TRUE(fits(schema, "null"));
  EXPECT_FALSE(fits(schema, "1"));
  EXPECT_TRUE(fits(R"({"$ref":"#/$defs/5%","$defs":{"5%":{"type":"null"}}})", "null"));
}

// A member that is of the same choice again.
TEST(JsonSchema, ChoicesInsideOfThemselves) {
  const char* tree = R"({"oneOf":[{"type":"object","properties":{"b":{"$ref":"#"}},"required":["b"]},
                                  {"type":"object","properties":{"b":{"$ref":"#","type":"null"}},"required":["b"]},
                                  {"type":"null"}]})";
  EXPECT_NE(test::message_of([&] { grammar_of(tree); }).find("may fit both"), std::string::npos);
  const char* list =
      R"({"oneOf":[{"type":"null"},{"type":"object","properties":{"next":{"$ref":"#"},"kind":{"const":1}},
                                  "required":["next","kind"],"additionalProperties":false}]})";
  EXPECT_TRUE(fits(list, R"({"next":{"next":null,"kind":1},"kind":1})"));
  EXPECT_FALSE(fits(list, R"({"next":{"next":null},"kind":1})"));
}

TEST(JsonSchema, ArraysOfFewerItemsThanTheyNeedAreNone) {
  const char* none = R"({"type":["array","null"],"items":{"type":"integer"},"minItems":3,"maxItems":1})";
  EXPECT_TRUE(fits(none, "null"));
  for (const char* text : {"[]", "[1]", "[1,2,3]"}) EXPECT_FALSE(fits(none, text)) << text;
}

TEST(JsonSchema, EveryIntegerRange) {
  for (int low = -25; low <= 25; low += 5)
    for (int high = low; high <= 130; high += 13) {
      const std::string schema = R"({"type":"integer","minimum":)" + std::to_string(low) + R"(,"maximum":)" +
                                 std::to_string(high) + "}";
      const auto grammar = grammar_of(schema);
      for (int x = -140; x <= 140; ++x) {
        GrammarMatcher m(grammar, tokens());
        EXPECT_EQ(m.accept_text(std::to_string(x)) && m.may_end(), low <= x && x <= high)
            << schema << " " << x;
      }
    }
}

TEST(JsonSchema, RefusesByName) {
  const auto message = [](const char* schema) { return test::message_of([&] { grammar_of(schema); }); };
  EXPECT_EQ(message(R"({"type":"object","not":{"type":"string"}})"),
            "schema: not is a keyword that is not supported");
  EXPECT_EQ(message(R"({"type":"text"})"),
            "schema: type is 'text'; known: null, boolean, integer, number, string, array, object");
  EXPECT_EQ(message(R"({"$ref":"#/x"})"), "schema: $ref '#/x' is nothing in this document");
  EXPECT_EQ(message(R"({"$ref":"#"})"), "schema refers to itself without an end, or has too many choices");
  EXPECT_NE(message(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})").find("may fit both"),
            std::string::npos);
  // A number has no length, so 3 fits both.
  EXPECT_NE(message(R"({"oneOf":[{"minLength":2},{"minimum":3}]})").find("may fit both"), std::string::npos);
  EXPECT_NE(message(R"({"type":"array","uniqueItems":true})").find("uniqueItems"), std::string::npos);
  EXPECT_EQ(message("false"), "json schema: no text fits this grammar");
}

}  // namespace
}  // namespace rlx::llm
