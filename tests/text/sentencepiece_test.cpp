// Real SentencePiece models; data/make_sentencepiece.py made them and asked the sentencepiece package.
#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/text/json.h"
#include "rlx/text/tokenizer.h"

namespace rlx::text {
namespace {

class SentencePieceModel : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return std::string("tests/text/data/") + GetParam() + ".model"; }
};

TEST_P(SentencePieceModel, ids_and_text_are_those_of_the_reference) {
  const Tokenizer t = Tokenizer::from_file(path());
  const Value file = parse_json(read_file("tests/text/data/sp_cases.json"), "sp_cases.json");
  size_t count = 0, bytes = 0;
  for (const Value& row : file.as_dict().find("models")->as_dict().find(GetParam())->as_list()) {
    const List& c = row.as_list();
    std::vector<TokenId> expected;
    for (const Value& id : c[1].as_list()) {
      expected.push_back(TokenId(id.as_int()));
      bytes += t.id_to_token(expected.back()).starts_with("<0x");
    }
    EXPECT_EQ(t.encode(c[0].as_string(), {.add_special = false, .parse_special = false}).ids, expected)
        << c[0].as_string();
    EXPECT_EQ(t.decode(expected, {.replace_invalid = true}), c[2].as_string()) << c[0].as_string();
    ++count;
  }
  EXPECT_GT(count, 100u);
  EXPECT_GT(bytes, 100u);  // byte fallback was used
}

TEST_P(SentencePieceModel, a_file_cut_short_is_refused_or_read_as_far_as_it_is_whole) {
  const std::string model = read_file(path());
  for (size_t cut = 0; cut < model.size(); cut += 37) {
    try {
      (void)Tokenizer::from_sentencepiece(std::string_view(model).substr(0, cut));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Text, SentencePieceModel, testing::Values("sp_bpe", "sp_unigram"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rlx::text
