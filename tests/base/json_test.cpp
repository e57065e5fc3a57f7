#include "rlx/base/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/base/json_write.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using test::message_of;

Json json(std::string text) { return Json::parse(std::move(text), "a.json"); }
std::string refusal(std::string text) {
  return message_of([&] { json(std::move(text)); });
}

TEST(Json, reads_every_kind_of_value) {
  const Json j =
      json(R"( {"i": -12, "r": 2.5e1, "s": "x", "t": true, "f": false, "n": null, "l": [1, [], {}]} )");
  EXPECT_EQ(j.at("i").integer(), -12);
  EXPECT_EQ(j.at("i").real(), -12.0);
  EXPECT_EQ(j.at("r").real(), 25.0);
  EXPECT_EQ(j.at("r").integer(), 25);
  EXPECT_EQ(j.at("s").string(), "x");
  EXPECT_TRUE(j.at("t").boolean());
  EXPECT_FALSE(j.at("f").boolean());
  EXPECT_FALSE(j.find("n"));
  EXPECT_EQ(j.at("l").size(), 3u);
  EXPECT_EQ(j.at("l").at(2).kind(), JsonKind::object);
  EXPECT_EQ(j.keys(), (std::vector<std::string>{"i", "r", "s", "t", "f", "n", "l"}));
  std::string order;
  for (const auto [key, value] : j.members()) order += key;
  EXPECT_EQ(order, "irstfnl");
  EXPECT_EQ(json("7").integer(), 7);
  EXPECT_EQ(json("\"\"").string(), "");
}

TEST(Json, a_kept_value_outlives_the_document) {
  Json kept;
  {
    const Json j = json(R"({"a": {"b": "long enough not to be kept in place"}})");
    kept = j.keep(j.at("a"));
  }
  EXPECT_EQ(kept.at("b").string(), "long enough not to be kept in place");
  EXPECT_EQ(kept.at("b").place(), "a.json: a.b");
}

TEST(Json, integers_keep_64_bits) {
  EXPECT_EQ(json("9223372036854775807").integer(), INT64_MAX);
  EXPECT_EQ(json("-9223372036854775808").integer(), INT64_MIN);
  EXPECT_EQ(json("18446744073709551615").unsigned_integer(), UINT64_MAX);
  EXPECT_EQ(message_of([] { json("18446744073709551615").integer(); }),
            "a.json is 18446744073709551615, beyond 64 bits with sign");
  EXPECT_EQ(message_of([] { json("-1").unsigned_integer(); }),
            "a.json is -1; an integer not below 0 expected");
  EXPECT_EQ(json("1000000000000000019884624838656").real(), 1e30);
  EXPECT_EQ(json("-9223372036854775809").kind(), JsonKind::real);
}

TEST(Json, reals_are_exact_and_never_become_something_else) {
  EXPECT_EQ(json("0.1").real(), 0.1);
  EXPECT_EQ(json("5e-324").real(), 5e-324);
  EXPECT_EQ(json("1e-400").real(), 0.0);
  EXPECT_EQ(json("0." + std::string(400, '0') + "1").real(), 0.0);
  EXPECT_TRUE(std::signbit(json("-1e-99999999999999999999").real()));
  for (const std::string huge : {"1e400", "-1e400", "1e99999999999999999999", "0.1e999"}) {
    EXPECT_EQ(refusal(huge), "a.json: JSON is malformed at line 1, column 1: the number " + huge +
                                 " is beyond the range of f64");
  }
  EXPECT_NE(refusal(std::string(400, '9')).find("beyond the range of f64"), std::string::npos);
}

TEST(Json, python_numbers_are_read_where_the_rules_say_so) {
  EXPECT_EQ(refusal("[NaN]"), "a.json: JSON is malformed at line 1, column 2: a value expected");
  EXPECT_EQ(refusal("-Infinity"), "a.json: JSON is malformed at line 1, column 1: a value expected");
  const Json j = Json::parse("[NaN, Infinity, -Infinity]", "a.json", {.python_numbers = true});
  EXPECT_TRUE(std::isnan(j.at(size_t(0)).real()));
  EXPECT_EQ(j.at(1).real(), INFINITY);
  EXPECT_EQ(j.at(2).real(), -INFINITY);
  EXPECT_EQ(j.text(), "[NaN,Infinity,-Infinity]");
  EXPECT_EQ(message_of([&] { j.at(1).integer(); }), "a.json: [1] is a number; an integer expected");
}

TEST(Json, strings_are_decoded) {
  EXPECT_EQ(json(R"("a\"\\\/\b\f\n\r\tz")").string(), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(json(R"("\u0041\u00e9\u20ac\ud83d\ude00")").string(), "Aé€😀");
  EXPECT_EQ(json("\"é€😀\x7f\"").string(), "é€😀\x7f");
  EXPECT_EQ(json(R"("\u0000")").string(), std::string_view("\0", 1));
  // Every place of an escape in words of eight bytes.
  for (size_t before = 0; before < 20; ++before) {
    const std::string plain(before, 'x');
    EXPECT_EQ(json("[\"" + plain + "\\n" + plain + "\"]").at(size_t(0)).string(), plain + "\n" + plain);
  }
  EXPECT_EQ(json("\"" + std::string(100000, 'y') + "\\t\"").string().size(), 100001u);
}

TEST(Json, errors_name_line_and_column) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"b\" 2}"), "a.json: JSON is malformed at line 2, column 6: ':' expected");
  EXPECT_EQ(refusal(""), "a.json: JSON is malformed at line 1, column 1: the text ends; a value expected");
  EXPECT_EQ(refusal("{} x"), "a.json: JSON is malformed at line 1, column 4: something follows the value");
  EXPECT_EQ(refusal("[1,]"), "a.json: JSON is malformed at line 1, column 4: a value must follow the comma");
  EXPECT_EQ(refusal("[1 2]"), "a.json: JSON is malformed at line 1, column 4: ',' or ']' expected");
  EXPECT_EQ(refusal("{\"a\":1"),
            "a.json: JSON is malformed at line 1, column 7: the text ends; ',' or '}' expected");
  EXPECT_EQ(refusal("{a: 1}"), "a.json: JSON is malformed at line 1, column 2: a key in quotes expected");
  for (const char* text : {"[,1]",
                           "{,}",
                           "tru",
                           "nul",
                           "+1",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "--1",
                           "'a'",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"a",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc0\xaf\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "]",
                           "[}",
                           "{\"a\":}",
                           "[1]]",
                           "\"\xe2\x82\""}) {
    EXPECT_NE(refusal(text).find("a.json: JSON is malformed at line"), std::string::npos)
        << text << refusal(text);
  }
}

TEST(Json, a_key_given_twice_is_refused_in_objects_of_any_size) {
  EXPECT_EQ(refusal(R"({"x": {"y": 1}, "z": 2, "x": 3})"),
            "a.json: the key 'x' occurs twice in one object, which ends at line 1, column 32");
  EXPECT_NE(refusal(R"({"a": 1, "\u0061": 2})").find("the key 'a' occurs twice"), std::string::npos);
  std::string large = "{";
  for (int i = 0; i < 5000; ++i) large += cat("\"k", i, "\":[{}],");
  EXPECT_EQ(json(large + "\"k\":0}").size(), 5001u);
  EXPECT_NE(refusal(large + "\"k77\":0}").find("the key 'k77' occurs twice"), std::string::npos);
}

TEST(Json, nesting_has_one_limit) {
  const auto nested = [](int depth) {
    return std::string(size_t(depth), '[') + std::string(size_t(depth), ']');
  };
  EXPECT_EQ(refusal(nested(kMaxJsonDepth)), "no error");
  EXPECT_EQ(refusal(nested(kMaxJsonDepth + 1)),
            "a.json: JSON at line 1, column 513 nests deeper than 512 levels");
  EXPECT_NE(refusal(std::string(1000000, '[')).find("nests deeper than 512 levels"), std::string::npos);
}

TEST(Json, places_are_paths_from_the_document) {
  const Json j = json(R"({"a": {"b": [1, {"c": [[], "x"]}]}, "d": 2})");
  EXPECT_EQ(j.place(), "a.json");
  EXPECT_EQ(j.at("a").at("b").at(1).at("c").at(1).place(), "a.json: a.b[1].c[1]");
  EXPECT_EQ(j.at("d").place(), "a.json: d");
  EXPECT_EQ(message_of([&] { j.at("a").at("b").at(1).at("c").integer(); }),
            "a.json: a.b[1].c is an array; an integer expected");
  EXPECT_EQ(message_of([&] { j.at("a").at("b").at(7); }),
            "a.json: a.b has 2 elements; element 7 was asked for");
  EXPECT_EQ(message_of([&] { j.at("z"); }), "a.json has no 'z'");
  EXPECT_EQ(message_of([&] { j.at("d").at("z"); }), "a.json: d is an integer; an object expected");
}

TEST(Json, text_reads_back) {
  const std::string text =
      R"({"a":[1,-2.5,1e-05,1e+20,"é\n\"\u0001",true,null,[],{}],"b":{"c":18446744073709551615,"d":3.0}})";
  EXPECT_EQ(json(text).text(), text);
  EXPECT_EQ(json(json(text).text(2)).text(), text);
  EXPECT_EQ(json(R"({"a":[1,{}],"b":[]})").text(2), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

TEST(JsonWriter, writes_what_it_is_told) {
  JsonWriter out;
  out.begin_object();
  out.member("name", "x\n");
  out.member("sizes", std::vector<int64_t>{2, 3});
  out.member("yes", true);
  out.key("reals"), out.begin_array();
  out.value(1.0), out.value(NAN), out.value(INFINITY), out.value(-INFINITY);
  out.end_array();
  out.key("nothing"), out.null();
  out.end_object();
  EXPECT_EQ(out.take(),
            R"({"name":"x\n","sizes":[2,3],"yes":true,"reals":[1.0,"nan","inf","-inf"],"nothing":null})");
}

TEST(JsonWriter, quotes_and_refuses_what_is_not_utf8) {
  EXPECT_EQ(json_quote("a\"\\\b\f\n\r\t\x01\x7fé"), "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7fé\"");
  EXPECT_EQ(message_of([] { json_quote("ab\xff"); }), "json: text of 3 bytes is not valid UTF-8 at byte 2");
  std::string out;
  append_json_string(out, "é😀\xff", {.ascii = true, .replace_invalid = true});
  EXPECT_EQ(out, R"("\u00e9\ud83d\ude00\ufffd")");
  EXPECT_EQ(message_of([] {
              JsonWriter w;
              w.begin_object();
              w.value(1);
            }).substr(0, 9),
            "internal:");
}

}  // namespace
}  // namespace rlx
