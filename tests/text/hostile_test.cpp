// Attacks on the readers of tokenizers and on the template engine, and texts made to take long.
// docs/hostile-input.md lists them.
#include <gtest/gtest.h>

#include <ctime>

#include "rlx/base/file.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/json.h"
#include "rlx/text/tokenizer.h"
#include "tests/support/hostile.h"

namespace rlx::text {
namespace {

using test::Attack, test::attack_name, test::expect_only_errors_near;

std::string repeated(std::string_view part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out.append(part);
  return out;
}

std::string bpe(const std::string& fields) { return R"({"model":{"type":"BPE",)" + fields + "}}"; }
// A good tokenizer with something else beside the model.
std::string beside(const std::string& part) {
  return R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},)" + part + "}";
}

const Attack kJsonAttacks[] = {
    {"empty_file", [] { return std::string(); }, "f: JSON is malformed at line 1, column 1"},
    {"list_for_object", [] { return std::string("[]"); }, "f: expected an object"},
    {"model_missing", [] { return std::string("{}"); }, "f: field 'model' is missing"},
    {"model_unknown", [] { return std::string(R"({"model":{"type":"Magic"}})"); },
     "f: model.type: unknown model 'Magic'; known: BPE"},
    {"two_tokens_with_one_id", [] { return bpe(R"("vocab":{"a":0,"b":0},"merges":[])"); },
     "'b' or its id 0 is there twice"},
    {"id_negative", [] { return bpe(R"("vocab":{"a":-1},"merges":[])"); }, "token id -1 is not in"},
    {"id_far_beyond_the_file", [] { return bpe(R"("vocab":{"a":60000000},"merges":[])"); },
     "the largest id is 60000000"},
    {"id_beyond_32_bits", [] { return bpe(R"("vocab":{"a":99999999999},"merges":[])"); }, "is not in 0.."},
    {"added_id_far_beyond_the_file",
     [] { return beside(R"("added_tokens":[{"id":50000000,"content":"x"}])"); }, "far beyond the vocabulary"},
    {"merge_of_an_unknown_token", [] { return bpe(R"("vocab":{"a":0},"merges":["a b"])"); },
     "merges[0]: token 'b' is not"},
    {"merge_of_one_token", [] { return bpe(R"("vocab":{"a":0},"merges":["a"])"); },
     "merges[0]: expected two tokens"},
    {"dropout", [] { return bpe(R"("vocab":{"a":0},"merges":[],"dropout":0.1)"); }, "dropout"},
    {"unigram_unknown_out_of_range",
     [] { return std::string(R"({"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":5}})"); },
     "unk_id: 5 is out of range"},
    {"normalizer_unknown", [] { return beside(R"("normalizer":{"type":"Nope"})"); },
     "normalizer: unknown normalizer type 'Nope'; known: NFC"},
    {"pretokenizer_unknown", [] { return beside(R"("pre_tokenizer":{"type":"Nope"})"); },
     "pre_tokenizer: unknown pre-tokenizer type 'Nope'"},
    {"words_without_a_length", [] { return beside(R"("pre_tokenizer":{"type":"FixedLength","length":0})"); },
     "pre_tokenizer.length: 0 characters; at least 1"},
    {"post_processor_unknown", [] { return beside(R"("post_processor":{"type":"Nope"})"); },
     "unknown post-processor type 'Nope'"},
    {"decoder_unknown", [] { return beside(R"("decoder":{"type":"Nope"})"); }, "unknown decoder type 'Nope'"},
    {"pattern_malformed",
     [] { return beside(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"}})"); },
     "regex: missing closing"},
    {"field_missing_deep_inside",
     [] { return beside(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split"}]})"); },
     "pre_tokenizer.pretokenizers[0]: field 'pattern' is missing"},
    {"padding_absurd", [] { return beside(R"("padding":{"strategy":{"Fixed":99999999999}})"); },
     "padding.strategy.Fixed"},
    {"nested_too_deep",
     [] { return R"({"normalizer":)" + repeated(R"({"type":"Sequence","normalizers":[)", 5000); },
     "nests deeper than 512 levels"},
    {"token_twice", [] { return bpe(R"("vocab":{"a":0,"a":1},"merges":[])"); },
     "the key 'a' occurs twice in one object"},
    {"id_beyond_64_bits", [] { return bpe(R"("vocab":{"a":18446744073709551615},"merges":[])"); },
     "is not in 0.."},
    {"id_not_whole", [] { return bpe(R"("vocab":{"a":1.5},"merges":[])"); },
     "the id of 'a' is not an integer"},
    {"charsmap_longer_than_it_says",
     [] { return beside(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////wAAAAA="})"); },
     "charsmap says its trie has 4294967295 bytes"},
    {"charsmap_without_end",
     [] { return beside(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAABh"})"); },
     "do not end with a NUL byte"},
};

class HostileTokenizer : public testing::TestWithParam<Attack> {};

TEST_P(HostileTokenizer, is_refused_with_place_and_reason) {
  const std::string message = test::message_of([&] { (void)Tokenizer::from_json(GetParam().bytes(), "f"); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("f")) << message;
}

INSTANTIATE_TEST_SUITE_P(Text, HostileTokenizer, testing::ValuesIn(kJsonAttacks), attack_name);

TEST(HostileTokenizer, prefixes_and_changed_bytes_give_errors_only) {
  const auto load = [](const std::string& json) {
    (void)Tokenizer::from_json(json, "f").encode("ab <x>\xFF", {.offsets = true});
  };
  expect_only_errors_near(
      R"({"added_tokens":[{"id":3,"content":"<x>","special":true}],"truncation":{"max_length":9},
          "normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"a"}]},
          "pre_tokenizer":{"type":"Split","pattern":{"Regex":"a+"},"behavior":"Isolated"},
          "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})",
      load);
}

TEST(HostileTokenizer, a_damaged_sentencepiece_model_gives_errors_only) {
  const std::string good = read_file("tests/text/data/sp_unigram.model");
  for (size_t i = 0; i < good.size(); i += 29) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ flip);
      const std::string message = test::message_of([&] {
        (void)Tokenizer::from_sentencepiece(bad).encode("fine \xEF\xAC\x81 caf\xC3\xA9", {.offsets = true});
      });
      EXPECT_FALSE(message.starts_with("internal")) << "byte " << i << ": " << message;
    }
  }
}

// Forty steps that each double the text: 2^40 bytes from one letter.
std::string doublings(const std::string& part, const std::string& list, const std::string& content) {
  std::string steps;
  for (int i = 0; i < 40; ++i)
    steps += std::string(i ? "," : "") + R"({"type":"Replace","pattern":{"String":"a"},"content":")" +
             content + "\"}";
  return beside("\"" + part + R"(":{"type":"Sequence",")" + list + "\":[" + steps + "]}");
}

TEST(HostileTokenizer, a_normalizer_that_doubles_the_text_again_and_again_is_stopped) {
  const Tokenizer t = Tokenizer::from_json(doublings("normalizer", "normalizers", "aa"), "f");
  for (const bool offsets : {false, true}) {
    EXPECT_NE(test::message_of([&] {
                (void)t.encode("a", {.offsets = offsets});
              }).find("the tokenizer makes more than 1048640 bytes of a text of 1; at most 64 times"),
              std::string::npos);
  }
  EXPECT_NO_THROW((void)t.encode("b"));
  // One step, with a long text for each letter.
  const std::string once = R"("normalizer":{"type":"Replace","pattern":{"Regex":"a"},"content":")" +
                           repeated("a", 100'000) + "\"}";
  const Tokenizer longer = Tokenizer::from_json(beside(once), "f");
  EXPECT_NE(test::message_of([&] { (void)longer.encode(repeated("a", 100'000)); }).find("at most 64 times"),
            std::string::npos);
}

TEST(HostileTokenizer, a_decoder_that_doubles_the_text_again_and_again_is_stopped) {
  EXPECT_NE(test::message_of([&] {
              (void)Tokenizer::from_json(doublings("decoder", "decoders", "aa"), "f");
            }).find("the tokenizer's decoder makes more than"),
            std::string::npos);
  // After the tokens were joined, where the steps see the whole text.
  std::string json = doublings("decoder", "decoders", "aa");
  const std::string open = R"("decoders":[)";
  json.insert(json.find(open) + open.size(), R"({"type":"Fuse"},)");
  const Tokenizer t = Tokenizer::from_json(json, "f");
  EXPECT_NE(test::message_of([&] {
              (void)t.decode(std::vector<TokenId>{0});
            }).find("the tokenizer's decoder makes more than"),
            std::string::npos);
}

const Attack kTemplateAttacks[] = {
    {"endless_loops",
     [] {
       return std::string("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
     },
     "steps"},
    {"huge_range", [] { return std::string("{{ range(1000000000000) }}"); },
     "'range' of 1000000000000 items"},
    {"huge_string", [] { return std::string("{{ 'a' * 100000000000 }}"); }, "a string of"},
    {"huge_list", [] { return std::string("{{ [1] * 100000000000 }}"); }, "a list of"},
    {"string_doubled_again_and_again",
     [] {
       return std::string(
           "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}");
     },
     "a string of"},
    {"value_shared_exponentially_and_printed",
     [] {
       return std::string(
           "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ "
           "n.s }}");
     },
     "steps"},
    {"value_shared_exponentially_as_json",
     [] {
       return std::string(
           "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}"
           "{{ n.s | tojson }}");
     },
     "steps"},
    {"value_shared_exponentially_and_compared",
     [] {
       return std::string(
           "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}"
           "{{ n.s == [n.s] or n.s == n.s }}");
     },
     "steps"},
    {"value_nested_too_deep",
     [] {
       return std::string(
           "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}");
     },
     "nested"},
    {"format_with_a_huge_width", [] { return std::string("{{ '%99999999999d' % 1 }}"); }, "a string of"},
    {"format_with_a_huge_precision", [] { return std::string("{{ '{:.99999999f}'.format(1.5) }}"); },
     "a string of"},
    {"format_nested_in_itself",
     [] {
       return "{{ '" + repeated("{:", 500) + repeated("}", 500) + "'.format(" + repeated("1,", 600) + ") }}";
     },
     "nested too deep"},
    {"column_too_wide", [] { return std::string("{{ 'a'.center(99999999999) }}"); }, "a string of"},
    {"tab_too_wide", [] { return std::string("{{ '\\t'.expandtabs(99999999999) }}"); }, "a string of"},
    {"slices_without_end", [] { return std::string("{{ [1] | slice(99999999999) | list }}"); }, "a list of"},
    {"batch_filled_without_end", [] { return std::string("{{ [1] | batch(99999999999, 0) | list }}"); },
     "a list of"},
    {"loop_calls_itself",
     [] { return std::string("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}"); },
     "a recursive loop calls itself"},
    {"unhashable_key", [] { return std::string("{{ {[]: 1} }}"); }, "cannot be a key"},
    {"macro_calls_itself", [] { return std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"); },
     "macros call each other"},
    {"parentheses_nested_too_deep",
     [] { return "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"; }, "nested deeper"},
    {"operators_nested_too_deep", [] { return "{{ " + repeated("not ", 5000) + "1 }}"; }, "nested deeper"},
    {"sum_too_long", [] { return "{{ 1" + repeated(" + 1", 5000) + " }}"; }, "levels"},
    {"subscripts_too_long", [] { return "{{ x" + repeated("[0]", 5000) + " }}"; }, "levels"},
    {"statements_nested_too_deep", [] { return repeated("{% if 1 %}", 5000); }, "nested deeper"},
    {"integer_overflow", [] { return std::string("{{ 9223372036854775807 + 1 }}"); },
     "does not fit in 64 bits"},
    {"power_overflow", [] { return std::string("{{ 3 ** 99 }}"); }, "does not fit in 64 bits"},
};

class HostileTemplate : public testing::TestWithParam<Attack> {};

TEST_P(HostileTemplate, ends_in_an_error) {
  const std::string message =
      test::message_of([&] { (void)ChatTemplate(GetParam().bytes()).render_with({}, {}); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("template: ")) << message;
}

INSTANTIATE_TEST_SUITE_P(Text, HostileTemplate, testing::ValuesIn(kTemplateAttacks), attack_name);

// A text is encoded, and its cost stays in proportion: four times the text takes far less than the sixteen
// times of a quadratic path. Processor time, for the machine may be busy with others.
void expect_linear(const Tokenizer& t, const std::function<std::string(size_t)>& text, size_t size) {
  const auto seconds = [&](size_t n) {
    double best = 1e9;
    const std::string input = text(n);
    for (int i = 0; i < 3; ++i) {
      const std::clock_t start = std::clock();
      (void)t.encode(input);
      best = std::min(best, double(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
  };
  const double small = seconds(size), large = seconds(size * 4);
  EXPECT_LT(large, 10 * small + 0.02)
      << small << " s for " << size << ", " << large << " s for four times as much";
}

TEST(HostileText, a_pattern_that_backtracks_without_end_is_an_error) {
  const Tokenizer t = Tokenizer::from_json(
      beside(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+$"},"behavior":"Isolated"})"));
  EXPECT_NE(test::message_of([&] {
              (void)t.encode(std::string(40, 'a') + "b");
            }).find("without heavy backtracking"),
            std::string::npos);
}

TEST(HostileText, one_character_repeated_takes_linear_time) {
  const Tokenizer t = Tokenizer::from_json(
      bpe(R"("vocab":{"a":0,"aa":1,"aaaa":2,"aaaaaaaa":3},"merges":["a a","aa aa","aaaa aaaa"])"));
  const auto ids = t.encode(std::string(100'007, 'a')).ids;
  EXPECT_EQ(ids.size(), 12'500u + 3);
  EXPECT_EQ(std::vector<TokenId>(ids.end() - 3, ids.end()), (std::vector<TokenId>{2, 1, 0}));
  expect_linear(t, [](size_t n) { return std::string(n, 'a'); }, 100'000);
}

TEST(HostileText, merges_that_reach_from_the_end_to_the_start_take_linear_time) {
  // No place can be cut and each merge waits for the one to its right: x turns the a before it, that the next
  // ...
  std::string vocab = R"("a":0,"x":1,"ax":2)", merges = R"(["a","x"])", token = "ax";
  for (int i = 3; i < 200; ++i) {
    merges += R"(,["a",")" + token + R"("])";
    token.insert(token.begin(), 'a');
    vocab += ",\"" + token + "\":" + std::to_string(i);
  }
  const Tokenizer t = Tokenizer::from_json(bpe(R"("vocab":{)" + vocab + R"(},"merges":[)" + merges + "]"));
  EXPECT_EQ(t.encode(std::string(3000, 'a') + "x").ids.size(), 3000 - 198 + 1u);
  expect_linear(t, [](size_t n) { return repeated(std::string(150, 'a') + "x", n / 151); }, 100'000);
  expect_linear(t, [](size_t n) { return std::string(n, 'a') + "x"; }, 100'000);
}

TEST(HostileText, a_word_without_end_takes_linear_time) {
  const Tokenizer unigram = Tokenizer::from_file("tests/text/data/sp_unigram.model");
  const Tokenizer pieces = Tokenizer::from_file("tests/text/data/sp_bpe.model");
  const auto letters = [](size_t n) {
    std::string text;
    for (uint32_t x = 1; text.size() < n; x = x * 1664525 + 1013904223)
      text.push_back(char('a' + (x >> 16) % 26));
    return text;
  };
  expect_linear(unigram, letters, 100'000);
  expect_linear(pieces, letters, 100'000);
}

TEST(HostileText, bytes_that_are_not_utf8_are_encoded_and_come_back) {
  const Tokenizer t = Tokenizer::from_file("tests/text/cli/folder");
  for (const std::string text : {"\xFF\xFE", "\xC3", "\xE4\xB8", "\xF0\x9F\x98", "\xED\xA0\x80", "\xC0\x80",
                                 "a\x80z", "\xF8\x88\x80\x80\x80", "\xF4\x90\x80\x80"}) {
    const Encoding e = t.encode(text, {.add_special = false, .offsets = true});
    EXPECT_EQ(t.decode(e.ids), text);
    EXPECT_TRUE(is_valid_utf8(t.decode(e.ids, {.replace_invalid = true})));
  }
  const std::string zeros("a\0b\0", 4);
  EXPECT_EQ(t.decode(t.encode(zeros, {.add_special = false}).ids), zeros);
}

TEST(HostileText, a_text_of_special_tokens_is_text_when_asked) {
  const Tokenizer t = Tokenizer::from_file("tests/text/cli/folder");
  const std::string text = "<|eot|><|bos|>";
  EXPECT_EQ(t.encode(text, {.add_special = false}).ids, (std::vector<TokenId>{267, 266}));
  const Encoding plain = t.encode(text, {.add_special = false, .parse_special = false});
  for (const TokenId id : plain.ids) EXPECT_FALSE(t.is_special(id));
  EXPECT_EQ(t.decode(plain.ids), text);
  expect_linear(t, [](size_t n) { return repeated("<|eot|>", n / 7); }, 100'000);
  expect_linear(t, [](size_t n) { return repeated("<|eot", n / 5); }, 100'000);
}

TEST(HostileText, ids_out_of_range_are_an_error) {
  const Tokenizer t = Tokenizer::from_file("tests/text/cli/folder");
  for (const TokenId id : {TokenId(-1), TokenId(268), TokenId(0x7FFFFFFF), TokenId(-0x7FFFFFFF - 1)}) {
    EXPECT_NE(test::message_of([&] {
                (void)t.decode(std::vector<TokenId>{1, id});
              }).find("at position 1 has no token"),
              std::string::npos);
    StreamDecoder stream(t);
    EXPECT_NE(test::message_of([&] { (void)stream.push(id); }), "no error");
  }
}

}  // namespace
}  // namespace rlx::text
