// Words of any length against the definition of byte pair encoding, carried out step by step.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "rlx/base/file.h"
#include "rlx/text/json.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/data.h"

namespace rlx::text {
namespace {

using Ids = std::vector<TokenId>;

struct Rules {
  std::map<std::string, TokenId> vocab;
  std::map<std::pair<TokenId, TokenId>, std::pair<int, TokenId>> merges;  // to rank and result
  std::string listed;                                                     // the merges as JSON

  void merge(const std::string& left, const std::string& right) {
    const auto result = vocab.try_emplace(left + right, TokenId(vocab.size())).first->second;
    const int rank = int(merges.size());
    if (!merges.try_emplace({vocab.at(left), vocab.at(right)}, rank, result).second) return;
    listed += (listed.empty() ? "[\"" : ",[\"") + left + "\",\"" + right + "\"]";
  }
  std::string json(const std::string& model_fields) const {
    std::string tokens;
    for (const auto& [text, id] : vocab)
      tokens += (tokens.empty() ? "\"" : ",\"") + text + "\":" + std::to_string(id);
    return R"({"model":{"type":"BPE",)" + model_fields + R"("vocab":{)" + tokens + R"(},"merges":[)" +
           listed + "]}}";
  }
  /// The pair of lowest rank, the leftmost of several, again and again. Quadratic.
  Ids encode(const std::string& word) const {
    Ids ids;
    for (const char c : word) ids.push_back(vocab.at(std::string(1, c)));
    for (;;) {
      size_t best = 0;
      std::pair<int, TokenId> merge{1 << 30, 0};
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = merges.find({ids[i], ids[i + 1]});
        if (found != merges.end() && found->second.first < merge.first) best = i, merge = found->second;
      }
      if (merge.first == 1 << 30) return ids;
      ids[best] = merge.second;
      ids.erase(ids.begin() + long(best) + 1);
    }
  }
};

/// Merges of tokens at random, with no training behind them: a merge may have a lower rank than those that
/// make its halves, tokens have several derivations, and influence runs far.
Rules random_rules(std::mt19937& random, const std::string& letters, int merges) {
  Rules rules;
  std::vector<std::string> tokens;
  for (const char c : letters) {
    rules.vocab.emplace(std::string(1, c), TokenId(rules.vocab.size()));
    tokens.emplace_back(1, c);
  }
  std::vector<std::pair<std::string, std::string>> list;
  for (int i = 0; i < merges; ++i) {
    const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
    if (left.size() + right.size() > 12) continue;
    list.emplace_back(left, right);
    tokens.push_back(left + right);
  }
  for (const std::string& t : tokens) rules.vocab.try_emplace(t, TokenId(rules.vocab.size()));
  std::shuffle(list.begin(), list.end(), random);
  for (const auto& [left, right] : list) rules.merge(left, right);
  return rules;
}

TEST(Bpe, long_words_are_merged_as_the_definition_says) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const std::string letters = std::string("abcdefghij").substr(0, 2 + random() % 8);
    const Rules rules = random_rules(random, letters, 5 + int(random() % 60));
    const bool whole_words = round % 2;
    const Tokenizer t = Tokenizer::from_json(rules.json(whole_words ? R"("ignore_merges":true,)" : ""));
    for (const size_t length : {40u, 60u, 1030u, 2600u}) {
      std::string word;
      while (word.size() < length) word.push_back(letters[random() % letters.size()]);
      ASSERT_EQ(t.encode(word).ids, rules.encode(word)) << rules.json("") << "\n" << word;
    }
  }
}

TEST(Bpe, a_part_of_a_long_word_is_not_looked_up_whole) {
  // "ab" is a token, but no merge makes it: only a word of its own may be that token.
  const Tokenizer t = Tokenizer::from_json(
      R"({"pre_tokenizer":{"type":"WhitespaceSplit"},
          "model":{"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2,"c":3,"bc":4},"merges":["b c"]}})");
  EXPECT_EQ(t.encode("ab").ids, (Ids{2}));
  std::string word;
  Ids expected;
  for (int i = 0; i < 100; ++i) word += "ab", expected.insert(expected.end(), {0, 1});
  EXPECT_EQ(t.encode(word).ids, expected);
  EXPECT_EQ(t.encode("ab").ids, (Ids{2}));
}

TEST(Bpe, a_chain_of_merges_through_the_whole_word_is_followed) {
  // Each merge enables the next one to its left, so the end of the word decides its beginning:
  // "x" turns the "a" before it into "ax", that turns "b" into "bax", which takes a "c" ...
  Rules rules;
  for (const char* c : {"a", "b", "x"}) rules.vocab.emplace(c, TokenId(rules.vocab.size()));
  rules.merge("a", "x");
  rules.merge("b", "ax");
  rules.merge("a", "bax");
  rules.merge("b", "abax");
  rules.merge("a", "b");
  rules.merge("ab", "ab");
  rules.merge("abab", "abab");
  const Tokenizer t = Tokenizer::from_json(rules.json(""));
  for (const size_t length : {1023u, 1024u, 1025u, 3001u}) {
    std::string word;
    while (word.size() < length) word += "ab";
    ASSERT_EQ(t.encode(word).ids, rules.encode(word)) << length;
    ASSERT_EQ(t.encode(word + "ax").ids, rules.encode(word + "ax")) << length;
    ASSERT_EQ(t.encode(word + "x" + word + "bax").ids, rules.encode(word + "x" + word + "bax")) << length;
  }
}

TEST(Bpe, characters_without_a_token_cut_a_word_only_where_bytes_stand_in) {
  // Unknown characters fuse across the place where a cut would be; byte tokens do not.
  const std::string vocab =
      R"("vocab":{"a":0,"b":1,"ab":2,"?":3},"merges":["a b"],"unk_token":"?","fuse_unk":true)";
  const Tokenizer fused = Tokenizer::from_json(R"({"model":{"type":"BPE",)" + vocab + "}}");
  std::string word;
  Ids expected;
  for (int i = 0; i < 40; ++i) word += "ab\xE4\xB8\xAD\xC3\xA9", expected.insert(expected.end(), {2, 3});
  EXPECT_EQ(fused.encode(word).ids, expected);

  std::string bytes = R"("a":0,"b":1,"ab":2)";
  for (int b = 0; b < 256; ++b) {
    char name[16];
    std::snprintf(name, sizeof name, ",\"<0x%02X>\":", unsigned(b));
    bytes += name + std::to_string(3 + b);
  }
  const Tokenizer fallback = Tokenizer::from_json(R"({"model":{"type":"BPE","byte_fallback":true,"vocab":{)" +
                                                  bytes + R"(},"merges":["a b"]}})");
  expected.clear();
  for (int i = 0; i < 40; ++i)
    expected.insert(expected.end(), {2, 3 + 0xE4, 3 + 0xB8, 3 + 0xAD, 3 + 0xC3, 3 + 0xA9});
  EXPECT_EQ(fallback.encode(word).ids, expected);

  // What is spelled in bytes is the character with its suffix, as in Hugging Face tokenizers 0.23.
  const Tokenizer suffixed = Tokenizer::from_json(
      R"({"model":{"type":"BPE","byte_fallback":true,"end_of_word_suffix":"</w>","vocab":{)" + bytes +
      R"(},"merges":["a b"]}})");
  EXPECT_EQ(suffixed.encode("ab\xC3\xA9").ids,
            (std::vector<TokenId>{2, 3 + 0xC3, 3 + 0xA9, 3 + '<', 3 + '/', 3 + 'w', 3 + '>'}));
}

TEST(Bpe, an_unbroken_text_is_the_same_in_one_piece_and_through_the_windows) {
  RLX_REQUIRE_DATA("tokenizers/bpe_llama3");
  const std::string path = test::data_path("tokenizers/bpe_llama3/tokenizer.json");
  const Value file = parse_json(read_file(path), path);
  Rules rules;
  const Dict& model = file.as_dict().find("model")->as_dict();
  for (const auto& [token, id] : model.find("vocab")->as_dict())
    rules.vocab[token.as_string()] = TokenId(id.as_int());
  for (const Value& m : model.find("merges")->as_list()) {
    const bool pair = m.is_list();
    const std::string line = pair ? std::string() : m.as_string();
    const std::string left = pair ? m.as_list()[0].as_string() : line.substr(0, line.find(' '));
    const std::string right = pair ? m.as_list()[1].as_string() : line.substr(line.find(' ') + 1);
    rules.merge(left, right);
  }
  std::string word;
  const Value cases =
      parse_json(read_file(test::data_path("tokenizers/bpe_llama3/cases.json")), "cases.json");
  for (const Value& c : cases.as_list())
    for (const char ch : c.as_dict().find("text")->as_string())
      if (ch >= 'a' && ch <= 'z') word.push_back(ch);
  word.resize(std::min<size_t>(word.size(), 4000));
  ASSERT_GT(word.size(), 3000u);
  EXPECT_EQ(Tokenizer::from_file(path).encode(word, {.add_special = false}).ids, rules.encode(word));
}

}  // namespace
}  // namespace rlx::text
