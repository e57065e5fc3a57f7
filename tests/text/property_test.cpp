// Properties over random input, seeded.
#include <gtest/gtest.h>

#include <random>

#include "rlx/base/file.h"
#include "rlx/text/normal_form.h"
#include "rlx/text/regex.h"
#include "rlx/text/splitter.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/data.h"

namespace rlx::text {
namespace {

Tokenizer load(const std::string& name) {
  return Tokenizer::from_json(read_file(test::data_path("tokenizers/" + name + "/tokenizer.json")), name);
}

// Pieces that the patterns treat differently, and that stand next to each other in odd ways.
constexpr std::string_view kPieces[] = {
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\xC2\xA0",
    "\xE2\x80\xA8",
    "\xE3\x80\x80",
    "\xE1\xA0\x8E",
    "\xC2\x85",
    "\x1C",
    "a",
    "Ab",
    "'",
    "'s",
    "'S",
    "'re",
    "'LL",
    "'l",
    "'\xC5\xBF",
    "12",
    "4567",
    "\xC2\xB2",
    "\xE4\xB8\xAD",
    "\xE3\x81\x82",
    "!",
    "?!",
    "_",
    "$",
    "\xE2\x82\xAC",
    "\xCC\x81",
    "\xF0\x9F\x99\x82",
    "\xE2\x85\xA7",
    "\xD9\xA3",
    "don't",
};

std::string random_text(std::mt19937& random) {
  std::string text;
  for (unsigned n = random() % 12; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
  return text;
}

class Splitters : public testing::TestWithParam<std::string_view> {};

TEST_P(Splitters, find_the_words_that_pcre2_finds) {
  const Regex regex(GetParam());
  const SplitFunction split = find_splitter(GetParam());
  ASSERT_NE(split, nullptr);
  std::mt19937 random(7);
  std::vector<Range> expected, words;
  for (int i = 0; i < 200'000; ++i) {
    const std::string text = random_text(random);
    // A part of a longer text: neither may look beyond it.
    const std::string padded = "x" + text + "x";
    const Range within{1, uint32_t(text.size()) + 1};
    expected.clear();
    words.clear();
    regex.find_all(padded, within, expected);
    split(padded, within, words);
    ASSERT_EQ(words, expected) << "'" << text << "'";
  }
}

TEST_P(Splitters, agree_with_pcre2_on_every_character_of_the_basic_plane_but_the_newest) {
  // PCRE2 and utf8proc come with different versions of Unicode; characters that one of them does not know
  // are counted, and must be few.
  const Regex regex(GetParam()), known(R"([\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{Cc}\p{Cf}])");
  const SplitFunction split = find_splitter(GetParam());
  std::vector<Range> expected, words, assigned;
  size_t skipped = 0;
  for (char32_t c = 1; c < 0x10000; ++c) {
    if (c >= 0xD800 && c < 0xF900) continue;
    std::string text = "a1 ";
    append_utf8(text, c);
    assigned.clear();
    known.find_all(text, {3, uint32_t(text.size())}, assigned);
    if (assigned.empty()) {
      ++skipped;
      continue;
    }
    append_utf8(text, c);
    text += "b ?";
    append_utf8(text, c);
    expected.clear();
    words.clear();
    regex.find_all(text, {0, uint32_t(text.size())}, expected);
    split(text, {0, uint32_t(text.size())}, words);
    ASSERT_EQ(words, expected) << "U+" << std::hex << unsigned(c);
  }
  EXPECT_LT(skipped, 2500u);
}

INSTANTIATE_TEST_SUITE_P(Text, Splitters, testing::Values(kGpt2Pattern, kLlama3Pattern, kQwen2Pattern));

class ByteLevel : public testing::TestWithParam<const char*> {};

TEST_P(ByteLevel, decoding_gives_back_any_byte_string) {
  RLX_REQUIRE_DATA("tokenizers");
  const Tokenizer tokenizer = load(GetParam());
  std::mt19937 random(11);
  std::string text;
  for (int i = 0; i < 500'000; ++i) {
    text.clear();
    const unsigned kind = random() % 4;
    for (unsigned n = random() % 24; n > 0; --n) {
      if (kind == 0) text.push_back(char(random()));
      if (kind == 1) text += kPieces[random() % std::size(kPieces)];
      if (kind == 2) text.push_back(char(32 + random() % 95));
      if (kind == 3)
        random() % 3 ? text += kPieces[random() % std::size(kPieces)] : text += char(random() | 0x80);
    }
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text).ids, {.skip_special = false}), text);
  }
}

TEST_P(ByteLevel, a_stream_gives_the_same_text_in_whole_characters) {
  RLX_REQUIRE_DATA("tokenizers");
  const Tokenizer tokenizer = load(GetParam());
  std::mt19937 random(13);
  for (int i = 0; i < 5'000; ++i) {
    const std::string text = random_text(random);
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const TokenId id : tokenizer.encode(text).ids) {
      const std::string part = stream.push(id);
      ASSERT_TRUE(is_valid_utf8(part));
      streamed += part;
    }
    streamed += stream.finish();
    ASSERT_EQ(streamed, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Text, ByteLevel, testing::Values("bpe_gpt2", "bpe_llama3"),
                         [](const auto& info) { return std::string(info.param); });

// Every tokenizer: offsets are in order, inside the text, on character borders; texts encode the same alone
// and in a batch on several threads.
class Every : public testing::TestWithParam<const char*> {};

TEST_P(Every, offsets_are_whole_characters_of_the_text) {
  RLX_REQUIRE_DATA("tokenizers");
  const Tokenizer tokenizer = load(GetParam());
  std::mt19937 random(17);
  for (int i = 0; i < 5'000; ++i) {
    const std::string text = random_text(random);
    const Encoding e = tokenizer.encode(text, {.add_special = false, .offsets = true});
    ASSERT_EQ(e.ids, tokenizer.encode(text, {.add_special = false}).ids);
    ASSERT_EQ(e.offsets.size(), e.ids.size());
    uint32_t last = 0;
    for (const Range r : e.offsets) {
      ASSERT_LE(r.begin, r.end);
      ASSERT_LE(r.end, text.size());
      ASSERT_TRUE(is_valid_utf8(text.substr(r.begin, r.size()))) << text;
      ASSERT_GE(r.begin + 4, last) << text;  // parts of one character share its range
      last = r.begin;
    }
  }
}

TEST_P(Every, a_batch_on_threads_is_the_texts_one_by_one) {
  RLX_REQUIRE_DATA("tokenizers");
  const Tokenizer tokenizer = load(GetParam());
  std::mt19937 random(19);
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back(random_text(random));
  const auto batch = tokenizer.encode_batch(texts, {}, 3);
  ASSERT_EQ(batch.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(batch[i].ids, tokenizer.encode(texts[i]).ids);
}

TEST_P(Every, a_stream_gives_the_text_of_all_ids_in_whole_characters) {
  RLX_REQUIRE_DATA("tokenizers");
  const Tokenizer tokenizer = load(GetParam());
  std::mt19937 random(29);
  int compared = 0;
  for (int i = 0; i < 2'000; ++i) {
    // Half of them ids that belong together, half any ids at all.
    std::vector<TokenId> ids = tokenizer.encode(random_text(random)).ids;
    if (i % 2) {
      ids.clear();
      while (ids.size() < 12) {
        const auto id = TokenId(random() % tokenizer.vocab_size());
        if (!tokenizer.id_to_token(id).empty()) ids.push_back(id);
      }
    }
    for (const bool skip : {true, false}) {
      StreamDecoder stream(tokenizer, {.skip_special = skip, .replace_invalid = true});
      std::string streamed;
      for (const TokenId id : ids) {
        const std::string part = stream.push(id);
        ASSERT_TRUE(is_valid_utf8(part));
        streamed += part;
      }
      streamed += stream.finish();
      const std::string whole = tokenizer.decode(ids, {.skip_special = skip, .replace_invalid = true});
      // A broken run of byte tokens is replaced as a whole by decode() and from the break on by a stream.
      const auto is_byte = [&](TokenId id) { return tokenizer.fallback_byte(id) >= 0; };
      const bool broken =
          std::any_of(ids.begin(), ids.end(), is_byte) && whole.find("\xEF\xBF\xBD") != whole.npos;
      if (!broken) {
        ASSERT_EQ(streamed, whole) << testing::PrintToString(ids);
      }
      compared += !broken;
    }
  }
  EXPECT_GT(compared, 2'000);
}

TEST_P(Every, accepts_any_bytes) {
  RLX_REQUIRE_DATA("tokenizers");
  const Tokenizer tokenizer = load(GetParam());
  std::mt19937 random(23);
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    for (unsigned n = random() % 40; n > 0; --n) text.push_back(char(random()));
    const Encoding e = tokenizer.encode(text, {.offsets = true});
    (void)tokenizer.decode(e.ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Text, Every,
                         testing::Values("bpe_gpt2", "bpe_llama2", "bpe_llama3", "bpe_qwen", "unigram",
                                         "wordpiece_bert"),
                         [](const auto& info) { return std::string(info.param); });

TEST(NormalForm, long_runs_of_marks_take_linear_time) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i)
    text += i % 2 ? "\xCC\x81" : "\xCC\xA3";  // classes 230 and 220, in the wrong order
  const std::string nfd = normalized(text, NormalForm::nfd);
  EXPECT_EQ(nfd.size(), text.size());
  EXPECT_EQ(nfd.substr(0, 5), "a\xCC\xA3\xCC\xA3");
  EXPECT_EQ(normalized("e\xCC\x81 \xE1\x84\x80\xE1\x85\xA1 \xEF\xAC\x81", NormalForm::nfc),
            "\xC3\xA9 \xEA\xB0\x80 \xEF\xAC\x81");
  EXPECT_EQ(normalized("\xEF\xAC\x81 \xEF\xBE\x8A\xEF\xBE\x9E", NormalForm::nfkc), "fi \xE3\x83\x90");
  EXPECT_EQ(normalized("\xC3\xA9", NormalForm::nfkd), "e\xCC\x81");
}

}  // namespace
}  // namespace rlx::text
