// Hugging Face tokenizers' own answers, to the last id.
#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/text/json.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/data.h"

namespace rlx::text {
namespace {

std::vector<TokenId> ids_of(const Value& list) {
  std::vector<TokenId> ids;
  for (const Value& v : list.as_list()) ids.push_back(TokenId(v.as_int()));
  return ids;
}

class Cases : public testing::TestWithParam<const char*> {};

TEST_P(Cases, ids_and_decoded_text_are_those_of_the_reference) {
  const std::string folder = std::string("tokenizers/") + GetParam();
  RLX_REQUIRE_DATA(folder);
  const Tokenizer tokenizer = Tokenizer::from_json(read_file(test::data_path(folder + "/tokenizer.json")));
  const Value cases = parse_json(read_file(test::data_path(folder + "/cases.json")), "cases.json");
  ASSERT_EQ(cases.as_list().size(), 359u);
  for (size_t i = 0; i < cases.as_list().size(); ++i) {
    const Dict& c = cases.as_list()[i].as_dict();
    const std::string& text = c.find("text")->as_string();
    const std::vector<TokenId> ids = ids_of(*c.find("ids"));
    EXPECT_EQ(tokenizer.encode(text).ids, ids) << "case " << i << ": " << text;
    EXPECT_EQ(tokenizer.encode(text, {.add_special = false}).ids, ids_of(*c.find("ids_no_special")))
        << "case " << i;
    EXPECT_EQ(tokenizer.decode(ids, {.replace_invalid = true}), c.find("decoded")->as_string())
        << "case " << i;
  }
}

TEST_P(Cases, offsets_are_those_of_the_reference) {
  const std::string folder = std::string("tokenizers/") + GetParam();
  RLX_REQUIRE_DATA(folder);
  const Tokenizer tokenizer = Tokenizer::from_json(read_file(test::data_path(folder + "/tokenizer.json")));
  const Value cases = parse_json(read_file(test::data_path(folder + "/cases.json")), "cases.json");
  const Value stored = parse_json(read_file("tests/text/data/offsets.json"), "offsets.json");
  const List& expected = stored.as_dict().find(GetParam())->as_list();
  ASSERT_EQ(expected.size(), cases.as_list().size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string& text = cases.as_list()[i].as_dict().find("text")->as_string();
    std::vector<TokenId> offsets;
    for (const Range r : tokenizer.encode(text, {.add_special = false, .offsets = true}).offsets)
      offsets.insert(offsets.end(), {TokenId(r.begin), TokenId(r.end)});
    EXPECT_EQ(offsets, ids_of(expected[i])) << "case " << i << ": " << text;
  }
}

TEST(Unigram, segmentations_of_equal_score_are_chosen_as_the_reference_chooses) {
  RLX_REQUIRE_DATA("tokenizers/unigram");
  const Tokenizer tokenizer =
      Tokenizer::from_json(read_file(test::data_path("tokenizers/unigram/tokenizer.json")));
  // Hugging Face tokenizers 0.23.3; the last bit of a score decides where the short run goes.
  EXPECT_EQ(tokenizer.encode("a" + std::string(57, '*')).ids,
            (std::vector<TokenId>{18, 2172, 2172, 1051, 2172}));
}

INSTANTIATE_TEST_SUITE_P(Text, Cases,
                         testing::Values("bpe_gpt2", "bpe_llama2", "bpe_llama3", "bpe_qwen", "unigram",
                                         "wordpiece_bert"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rlx::text
