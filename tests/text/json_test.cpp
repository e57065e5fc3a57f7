#include "rlx/text/json.h"

#include <gtest/gtest.h>

#include "rlx/base/error.h"

namespace rlx::text {
namespace {

std::string round_trip(std::string_view text, const JsonStyle& style = {}) {
  std::string out;
  append_json(out, parse_json(text, "test"), style);
  return out;
}

TEST(Json, writes_what_python_writes) {
  const std::string_view text = R"({"b":[1,2.5,true,null,"\u00e9\n\""],"a":{}})";
  EXPECT_EQ(round_trip(text), R"({"b": [1, 2.5, true, null, "é\n\""], "a": {}})");
  EXPECT_EQ(round_trip(text, {.sort_keys = true, .ascii = true}),
            R"({"a": {}, "b": [1, 2.5, true, null, "\u00e9\n\""]})");
  EXPECT_EQ(round_trip("[1,{\"a\":[]}]", {.indent = 2}), "[\n  1,\n  {\n    \"a\": []\n  }\n]");
  EXPECT_EQ(round_trip("[1,2]", {.item_separator = ",", .key_separator = ":"}), "[1,2]");
  EXPECT_EQ(round_trip("[\"\\ud83d\\ude00\"]", {.ascii = true}), "[\"\\ud83d\\ude00\"]");
}

TEST(Json, refuses_what_is_not_json) {
  EXPECT_THROW(parse_json("{\"a\": }", "test"), Error);
  EXPECT_THROW(parse_json("", "test"), Error);
  EXPECT_THROW(parse_json(std::string(10000, '['), "test"), Error);
  EXPECT_THROW(parse_json("[\"\xff\"]", "test"), Error);
}

// The reader of every room: the same messages, limits and numbers.
TEST(Json, is_read_as_everywhere) {
  const auto refusal = [](std::string_view text) {
    try {
      parse_json(text, "f");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(refusal("{\"a\": 1,\n \"a\": 2}").substr(0, 47),
            "f: the key 'a' occurs twice in one object, whic");
  EXPECT_EQ(refusal("[1,\n 2").substr(0, 33), "f: JSON is malformed at line 2, c");
  EXPECT_EQ(parse_json("9223372036854775807", "f").as_int(), INT64_MAX);
  EXPECT_EQ(parse_json("-9223372036854775808", "f").as_int(), INT64_MIN);
  EXPECT_EQ(parse_json("18446744073709551615", "f").as_double(), 0x1p64);
  EXPECT_EQ(parse_json("1000000000000000019884624838656", "f").as_double(), 1e30);
}

TEST(Json, a_large_object_is_found_by_key_and_keeps_its_order) {
  Dict d;
  for (int i = 0; i < 5000; ++i) d.set("key" + std::to_string(i), Value(i));
  d.set("key7", Value(-7));
  ASSERT_EQ(d.size(), 5000u);
  EXPECT_EQ(d.find("key4999")->as_int(), 4999);
  EXPECT_EQ(d.find("key7")->as_int(), -7);
  EXPECT_EQ(d.find("absent"), nullptr);
  EXPECT_EQ(d[42].first.as_string(), "key42");
}

TEST(Fields, messages_name_the_path) {
  const Fields f(parse_json(R"({"a": {"b": 3}})", "test"), "root");
  try {
    (void)f.object("a").string("b");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "root.a.b: expected a string, got integer");
  }
}

}  // namespace
}  // namespace rlx::text
