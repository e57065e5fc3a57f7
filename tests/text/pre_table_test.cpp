// The names of tokenizer.ggml.pre against the list of what they mean.
#include "rlx/text/pre_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/text/json.h"
#include "rlx/text/pretokenizer.h"
#include "rlx/text/regex.h"
#include "rlx/text/vocab_spec.h"
#include "tests/support/data.h"

namespace rlx::text {
namespace {

using Ids = std::vector<TokenId>;

// Cuts by the definition: one pattern after the other, at the matches and between them.
std::vector<std::string> words_by_definition(const std::vector<Regex>& patterns, const std::string& text) {
  std::vector<Range> words{{0, uint32_t(text.size())}};
  for (const Regex& regex : patterns) {
    std::vector<Range> next;
    for (const Range word : words) {
      std::vector<Range> matches;
      regex.find_all(text, word, matches, Regex::Empty::kept);
      uint32_t at = word.begin;
      for (const Range m : matches) {
        if (at < m.begin) next.push_back({at, m.begin});
        if (m.begin < m.end) next.push_back(m);
        at = m.end;
      }
      if (at < word.end) next.push_back({at, word.end});
    }
    words.swap(next);
  }
  std::vector<std::string> out;
  for (const Range w : words) out.push_back(text.substr(w.begin, w.size()));
  return out;
}

std::vector<std::string> words_by_table(const PreRules& rules, const std::string& text) {
  Pieces pieces;
  pieces.reset(text, 0, false);
  pieces.start();
  for (const std::string_view pattern : rules.patterns) make_split(pattern)->apply(pieces);
  std::vector<std::string> out;
  for (const Range w : pieces.words) out.push_back(text.substr(w.begin, w.size()));
  return out;
}

std::vector<std::string> random_texts() {
  const std::vector<std::string> parts = {
      "a",         "B",       "é",      "É",      "ß",      "s",      "'",
      "'s",        "'S",      "'ll",    "'LL",    "'ſ",     "1",      "23",
      "4567",      "１",      "½",      "٣",      " ",      "  ",     "   ",
      "\n",        "\r\n",    "\t",     "\u00a0", "\u3000", ".",      ",",
      "!?",        "…",       "。",     "(",      "_",      "/",      "$",
      "+",         "中",      "文",     "の",     "カ",     "한",     "ก",
      "🙂",        "e\u0301", "\u0301", "ǅ",      "ʰ",      "\u200d", "<sentinel:3>",
      "IMGIMGABZ", "x",       "Word",   "WORD",   "word",   "\u11a7", "𞤀",
      "𐐀",         "\u3031",  "々",     "〇"};
  std::mt19937 random(7);
  std::vector<std::string> out = {"", " ", "Hello, World!", "it's 12345 o'clock\n\n  x"};
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (unsigned n = 1 + random() % 14; n > 0; --n) text += parts[random() % parts.size()];
    out.push_back(text);
  }
  return out;
}

// kimi-k2 and afmoe are given by what stands for a pattern there; the tests below hold them to its meaning.
bool has_placeholder(std::string_view name) { return name == "kimi-k2" || name == "afmoe"; }

TEST(PreTable, names_flags_and_words_are_those_of_the_list) {
  RLX_REQUIRE_DATA("gguf-pre.json");
  const Value list = parse_json(read_file(test::data_path("gguf-pre.json")), "gguf-pre.json");
  ASSERT_EQ(list.as_dict().size(), 87u);
  EXPECT_EQ(pre_table().size(), 87u);
  EXPECT_TRUE(std::is_sorted(pre_table().begin(), pre_table().end(),
                             [](const PreRules& a, const PreRules& b) { return a.name < b.name; }));
  const std::vector<std::string> texts = random_texts();
  for (const auto& [key, value] : list.as_dict()) {
    const std::string& name = key.as_string();
    SCOPED_TRACE(name);
    const PreRules* rules = find_pre_rules(name);
    ASSERT_TRUE(rules);
    const Fields f(value, name);
    EXPECT_EQ(rules->has(kIgnoreMerges), f.boolean("ignore_merges", false));
    EXPECT_EQ(rules->has(kAddBos), f.boolean("add_bos", false));
    EXPECT_EQ(rules->has(kAddSeparator), f.boolean("add_sep", false));
    EXPECT_EQ(rules->has(kCleanSpaces), f.boolean("clean_spaces", true));
    EXPECT_EQ(rules->has(kMarkSpaces), f.boolean("escape_whitespaces", false));
    EXPECT_EQ(rules->has(kCharacters), !f.boolean("byte_level", true));
    if (has_placeholder(name)) continue;
    std::vector<Regex> patterns;
    for (const Value& p : f.list("patterns")) patterns.emplace_back(p.as_string());
    for (const std::string& text : texts)
      ASSERT_EQ(words_by_table(*rules, text), words_by_definition(patterns, text)) << text;
  }
}

TEST(PreTable, numbers_fall_into_groups_of_three_from_the_right) {
  using Words = std::vector<std::string>;
  const PreRules& afmoe = *find_pre_rules("afmoe");
  EXPECT_EQ(words_by_table(afmoe, "12345678x90"), (Words{"12", "345", "678", "x", "90"}));
  EXPECT_EQ(words_by_table(afmoe, "a123 4567"), (Words{"a", "123", " ", "4", "567"}));
  const PreRules& superbpe = *find_pre_rules("superbpe");
  EXPECT_EQ(words_by_table(superbpe, "a 12345678 b"), (Words{"a ", "12", "345", "678", " b"}));
  const PreRules& aya = *find_pre_rules("tiny_aya");
  EXPECT_EQ(words_by_table(aya, "12345 12345x"), (Words{"12", "345", " ", "123", "45", "x"}));
}

TEST(PreTable, kimi_keeps_han_characters_in_words_of_their_own) {
  using Words = std::vector<std::string>;
  const PreRules& kimi = *find_pre_rules("kimi-k2");
  EXPECT_EQ(words_by_table(kimi, "abc中文def 中 1234"),
            (Words{"abc", "中文", "def", " ", "中", " ", "123", "4"}));
  // U+3001 is shared by scripts and of none.
  EXPECT_EQ(words_by_table(kimi, "中、文"), (Words{"中", "、", "文"}));
}

VocabSpec bytes_only(std::string pre) {
  VocabSpec spec{.model = "gpt2", .pre = std::move(pre)};
  for (int b = 0; b < 256; ++b) append_utf8(spec.tokens.emplace_back(), byte_to_char(uint8_t(b)));
  spec.types.assign(256, TokenType::normal);
  spec.tokens.push_back("<|begin_of_text|>");
  spec.types.push_back(TokenType::control);
  spec.bos = 256;
  return spec;
}

TEST(PreTable, the_bos_token_is_added_where_the_name_says_so) {
  for (const char* pre : {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "tekken", "chameleon"})
    EXPECT_EQ(make_tokenizer(bytes_only(pre), pre).encode("Hi").ids, (Ids{256, 'H', 'i'})) << pre;
  for (const char* pre : {"", "gpt-2", "qwen2", "deepseek-llm", "smaug-bpe"})
    EXPECT_EQ(make_tokenizer(bytes_only(pre), "x").encode("Hi").ids, (Ids{'H', 'i'})) << pre;
  // What the file says wins, both ways.
  VocabSpec without = bytes_only("llama-bpe");
  without.add_bos = false;
  EXPECT_EQ(make_tokenizer(without, "x").encode("Hi").ids, (Ids{'H', 'i'}));
  VocabSpec with = bytes_only("gpt-2");
  with.add_bos = true;
  EXPECT_EQ(make_tokenizer(with, "x").encode("Hi").ids, (Ids{256, 'H', 'i'}));
}

TEST(PreTable, the_second_text_of_a_pair_follows_the_separator_where_the_name_says_so) {
  VocabSpec spec = bytes_only("roberta-bpe");
  spec.tokens.push_back("</s>");
  spec.types.push_back(TokenType::control);
  spec.eos = spec.separator = 257;
  spec.add_bos = spec.add_eos = true;
  EXPECT_EQ(make_tokenizer(spec, "x").encode_pair("a", "b").ids, (Ids{256, 'a', 257, 257, 'b', 257}));
  spec.pre = "gpt-2";
  EXPECT_EQ(make_tokenizer(spec, "x").encode_pair("a", "b").ids, (Ids{256, 'a', 257, 'b', 257}));
}

TEST(PreTable, decoding_cleans_spaces_when_asked_and_where_the_name_says_so) {
  const Ids ids{'a', ' ', '.', ' ', '\'', 's'};  // a byte is its own id here
  const Tokenizer cleaned = make_tokenizer(bytes_only("gpt-2"), "x");
  EXPECT_EQ(cleaned.decode(ids), "a . 's");
  EXPECT_EQ(cleaned.decode(ids, {.clean_spaces = true}), "a.'s");
  EXPECT_EQ(make_tokenizer(bytes_only("qwen2"), "x").decode(ids, {.clean_spaces = true}), "a . 's");
}

TEST(PreTable, every_name_takes_long_hard_texts_in_its_stride) {
  // A megabyte of one kind of character each: nothing to cut at, or everything.
  const auto repeated = [](std::string_view part, size_t bytes) {
    std::string out;
    while (out.size() < bytes) out.append(part);
    return out;
  };
  std::vector<std::string> texts;
  for (const char* part : {"a", "Ab", "7", " ", "中", "é", "\u0301", "!", "\n", "'s", "\xff", "a b "})
    texts.push_back(repeated(part, 300'000));
  for (const PreRules& rules : pre_table()) {
    for (const std::string& text : texts) {
      SCOPED_TRACE(cat(rules.name, ", ", text.substr(0, 4)));
      std::vector<std::string> words;
      ASSERT_NO_THROW(words = words_by_table(rules, text));
      size_t bytes = 0;
      for (const std::string& w : words) bytes += w.size();
      EXPECT_EQ(bytes, text.size());
    }
  }
}

}  // namespace
}  // namespace rlx::text
