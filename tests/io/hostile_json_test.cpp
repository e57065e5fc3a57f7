#include "rlx/io/hf_config.h"
#include "tests/support/hostile.h"

namespace rlx::io {
namespace {

using test::Attack, test::attack_name, test::expect_only_errors_near;

const Attack kAttacks[] = {
    {"empty_file", [] { return std::string(); }, "JSON is malformed"},
    {"cut_short", [] { return std::string("{\"a\": "); }, "JSON is malformed"},
    {"text_behind", [] { return std::string("{} x"); }, "JSON is malformed"},
    {"nested_too_deep", [] { return "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}"; },
     "nests deeper than 512 levels"},
    {"brackets_without_end", [] { return std::string(1000000, '['); }, "nests deeper than 512 levels"},
    {"key_twice", [] { return std::string(R"({"vocab_size": 1, "x": {"y": 1}, "vocab_size": 2})"); },
     "the key 'vocab_size' occurs twice in one object"},
    {"not_utf8", [] { return std::string("{\"a\": \"\xff\"}"); }, "JSON is malformed"},
    {"half_a_surrogate", [] { return std::string(R"({"a": "\ud800"})"); }, "JSON is malformed"},
    {"number_beyond_double", [] { return std::string(R"({"rms_norm_eps": 1e999})"); }, "JSON is malformed"},
    {"integer_beyond_64_bits", [] { return std::string(R"({"vocab_size": 18446744073709551615})"); },
     "vocab_size is 18446744073709551615, beyond 64 bits with sign"},
    {"integer_as_huge_real", [] { return std::string(R"({"vocab_size": 1e30})"); }, "an integer expected"},
    {"control_character", [] { return std::string("{\"a\": \"\n\"}"); }, "JSON is malformed"},
};

class HostileJson : public testing::TestWithParam<Attack> {};

TEST_P(HostileJson, is_refused_with_place_and_reason) {
  const std::string message =
      test::message_of([&] { read_model_config(Json::parse(GetParam().bytes(), "config.json")); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("config.json: ")) << message;
}

INSTANTIATE_TEST_SUITE_P(Io, HostileJson, testing::ValuesIn(kAttacks), attack_name);

TEST(HostileJson, prefixes_and_changed_bytes_give_errors_only) {
  expect_only_errors_near(
      R"({"vocab_size": 5, "eos_token_id": [1, 2], "bos_token": {"content": "x"}, "added_tokens_decoder": {"1": "a"}})",
      [](const std::string& text) {
        const Json json = Json::parse(text, "config.json");
        (void)to_json(read_model_config(json));
        (void)read_generation_config(json);
        (void)read_tokenizer_config(json);
      });
}

}  // namespace
}  // namespace rlx::io
