// Added tokens that have one form, and the places of spaces; expected values are those of Hugging Face tokenizers 0.23.3.
#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "rlx/text/tokenizer.h"

namespace rlx::text {
namespace {

using Ids = std::vector<TokenId>;
using Ranges = std::vector<Range>;

Tokenizer lowercased(const std::string& added) {
  return Tokenizer::from_json(
      cat(R"({"added_tokens":[)", added, R"(],"normalizer":{"type":"Lowercase"},"model":{"type":"BPE",
           "vocab":{"a":0,"b":1,"?":2,"f":3,"o":4," ":5},"merges":[],"unk_token":"?"}})"));
}

TEST(AddedTokens, of_two_with_one_normalised_form_the_first_is_found) {
  const Tokenizer plain = lowercased(R"({"id":6,"content":"foo"},{"id":7,"content":"Foo"})");
  EXPECT_EQ(plain.encode("a Foo").ids, (Ids{0, 5, 6}));
  // It is not looked further where the flags of the first say no.
  const Tokenizer word =
      lowercased(R"({"id":6,"content":"foo","single_word":true},{"id":7,"content":"Foo"})");
  EXPECT_EQ(word.encode("FOO").ids, Ids{6});
  EXPECT_EQ(word.encode("aFOOb").ids, (Ids{0, 3, 4, 4, 1}));
}

TEST(AddedTokens, of_two_with_one_normalised_form_a_special_one_comes_first) {
  for (const char* order :
       {R"({"id":6,"content":"foo"},{"id":7,"content":"FOO","special":true,"normalized":true})",
        R"({"id":7,"content":"FOO","special":true,"normalized":true},{"id":6,"content":"foo"})"}) {
    const Tokenizer t = lowercased(order);
    EXPECT_EQ(t.encode("a foo").ids, (Ids{0, 5, 7}));
    EXPECT_EQ(t.encode("a foo", {.parse_special = false}).ids, (Ids{0, 5, 6}));
  }
}

Tokenizer byte_level(bool prefix) {
  const std::string part =
      cat(R"({"type":"ByteLevel","trim_offsets":true,"add_prefix_space":)", prefix ? "true" : "false", "}");
  return Tokenizer::from_json(
      cat(R"({"added_tokens":[{"id":5,"content":"<x>","special":true,"lstrip":true,"rstrip":true}],
           "normalizer":{"type":"NFKC"},"pre_tokenizer":)",
          part, R"(,"post_processor":)", part,
          R"(,"model":{"type":"BPE","vocab":{"Ġ":0,"ã":1,"Ĥ":2,"ģ":3,"a":4},"merges":[]}})"));
}

Ranges offsets(const Tokenizer& t, std::string_view text) {
  return t.encode(text, {.offsets = true}).offsets;
}

// A space that was put in front stands for a character of any length, and one that a normaliser made of another too.
TEST(AddedTokens, trimmed_spaces_are_whole_characters_of_the_text) {
  const Tokenizer prefix = byte_level(true), plain = byte_level(false);
  EXPECT_EQ(offsets(prefix, "あ"), (Ranges{{0, 0}, {0, 3}, {0, 3}, {0, 3}}));
  EXPECT_EQ(offsets(prefix, "a\u3000a"), (Ranges{{0, 0}, {0, 1}, {4, 4}, {4, 5}}));
  EXPECT_EQ(offsets(prefix, "\u3000\u3000a"), (Ranges{{0, 0}, {6, 6}, {6, 7}}));
  EXPECT_EQ(offsets(plain, "\u3000\u3000a"), (Ranges{{3, 3}, {6, 6}, {6, 7}}));
}

TEST(AddedTokens, spaces_that_a_token_takes_are_trimmed_too) {
  EXPECT_EQ(offsets(byte_level(false), " <x> \n a"), (Ranges{{1, 4}, {7, 8}}));
  EXPECT_EQ(offsets(byte_level(false), "a<x>\u3000"), (Ranges{{0, 1}, {1, 4}}));
  EXPECT_EQ(offsets(byte_level(true), " <x> \n a"), (Ranges{{0, 4}, {8, 8}, {7, 8}}));
}

}  // namespace
}  // namespace rlx::text
