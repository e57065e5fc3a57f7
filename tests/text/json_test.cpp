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
