// Single components against Hugging Face tokenizers; components/make_cases.py made the answers.
#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/text/decoder.h"
#include "rlx/text/json.h"
#include "rlx/text/normalizer.h"
#include "rlx/text/pretokenizer.h"
#include "rlx/text/tokenizer.h"

namespace rlx::text {
namespace {

/// Calls check(config, input, expected) for every stored case of one kind of component.
template <class Check>
void for_each_case(std::string_view kind, Check check) {
  const Value file = parse_json(read_file("tests/text/components/cases.json"), "cases.json");
  size_t count = 0;
  for (const Value& group : file.as_dict().find(kind)->as_list()) {
    const Value& config = *group.as_dict().find("config");
    std::string shown;
    append_json(shown, config);
    SCOPED_TRACE(shown);
    for (const Value& c : group.as_dict().find("cases")->as_list()) {
      check(config, c.as_list()[0], c.as_list()[1]);
      ++count;
    }
  }
  EXPECT_GT(count, 50u);
}

TEST(Normalizer, each_kind_does_what_the_reference_does) {
  for_each_case("normalizers", [](const Value& config, const Value& input, const Value& expected) {
    TrackedText text;
    text.reset(input.as_string(), 0, true);
    make_normalizer(config, "normalizer")->apply(text);
    EXPECT_EQ(text.view(), expected.as_string()) << input.as_string();
  });
}

TEST(PreTokenizer, each_kind_does_what_the_reference_does) {
  for_each_case("pre_tokenizers", [](const Value& config, const Value& input, const Value& expected) {
    Pieces pieces;
    pieces.reset(input.as_string(), 0, true);
    pieces.start();
    make_pretokenizer(config, "pre_tokenizer")->apply(pieces);
    std::vector<std::string> words, wanted;
    for (const Range w : pieces.words) words.emplace_back(pieces.text.view().substr(w.begin, w.size()));
    for (const Value& w : expected.as_list()) wanted.push_back(w.as_string());
    EXPECT_EQ(words, wanted) << input.as_string();
  });
}

TEST(Decoder, each_kind_does_what_the_reference_does) {
  for_each_case("decoders", [](const Value& config, const Value& input, const Value& expected) {
    std::vector<std::string> tokens;
    for (const Value& t : input.as_list()) tokens.push_back(t.as_string());
    EXPECT_EQ(replace_invalid_utf8(run_decoder(make_decoder(config, "decoder"), 0, tokens)),
              expected.as_string());
  });
}

// Post-processors, truncation and padding: whole tokenizers over one text or two. A null is a refusal.
TEST(PostProcessor, frames_truncation_and_padding_are_those_of_the_reference) {
  size_t refused = 0;
  for_each_case("frames", [&](const Value& config, const Value& input, const Value& expected) {
    std::string json;
    append_json(json, config);
    const Tokenizer t = Tokenizer::from_json(json);
    const Value& second = input.as_list()[1];
    const auto encode = [&] {
      const std::string& first = input.as_list()[0].as_string();
      const EncodeOptions options{.offsets = true};
      return second.is_string() ? t.encode_pair(first, second.as_string(), options)
                                : t.encode(first, options);
    };
    std::string shown;
    append_json(shown, input);
    SCOPED_TRACE(shown);
    if (!expected.is_list()) {
      EXPECT_THROW((void)encode(), Error);
      ++refused;
      return;
    }
    const Encoding e = encode();
    const auto wanted = [&](size_t i) {
      std::vector<int64_t> list;
      for (const Value& v : expected.as_list()[i].as_list()) list.push_back(v.as_int());
      return list;
    };
    const auto as_list = [](const auto& values) {
      return std::vector<int64_t>(values.begin(), values.end());
    };
    EXPECT_EQ(as_list(e.ids), wanted(0));
    EXPECT_EQ(as_list(e.type_ids), wanted(1));
    EXPECT_EQ(as_list(e.attention_mask), wanted(2));
    EXPECT_EQ(as_list(e.special_mask), wanted(3));
    std::vector<int64_t> offsets;
    for (const Range r : e.offsets) offsets.insert(offsets.end(), {int64_t(r.begin), int64_t(r.end)});
    EXPECT_EQ(offsets, wanted(4));
  });
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace rlx::text
