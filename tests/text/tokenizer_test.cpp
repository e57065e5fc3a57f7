// Behaviour that the stored cases do not show.
#include "rlx/text/tokenizer.h"

#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "rlx/text/vocab_spec.h"

namespace rlx::text {
namespace {

// A character-level BPE with two merges; `extra` goes between the braces of the file.
std::string small_bpe(const std::string& extra = "") {
  return R"({"added_tokens":[{"id":9,"content":"<x>","special":true,"lstrip":true},
                             {"id":10,"content":"mask","single_word":true,"normalized":false}],
             "model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4," ":5,"?":6},
                      "merges":["a b",["ab","c"]],"unk_token":"?"})" +
         extra + "}";
}

std::vector<TokenId> ids(const Tokenizer& t, std::string_view text) { return t.encode(text).ids; }
using Ids = std::vector<TokenId>;

TEST(Tokenizer, merges_pairs_by_rank_and_replaces_unknown_characters) {
  const Tokenizer t = Tokenizer::from_json(small_bpe());
  EXPECT_EQ(ids(t, "abcab"), (Ids{4, 3}));
  EXPECT_EQ(ids(t, "az"), (Ids{0, 6}));
  EXPECT_EQ(ids(t, ""), Ids{});
  EXPECT_EQ(t.vocab_size(), 11u);
  EXPECT_EQ(t.token_to_id("<x>"), 9);
  EXPECT_EQ(t.id_to_token(4), "abc");
  EXPECT_EQ(t.id_to_token(8), "");
}

TEST(Tokenizer, added_tokens_keep_their_flags) {
  const Tokenizer t = Tokenizer::from_json(small_bpe());
  EXPECT_EQ(ids(t, "a  <x>b"), (Ids{0, 9, 1}));      // takes the spaces before it
  EXPECT_EQ(ids(t, "a mask"), (Ids{0, 5, 10}));      // a word of its own
  EXPECT_EQ(ids(t, "amask"), (Ids{0, 6, 0, 6, 6}));  // part of a word
  EXPECT_EQ(t.encode("<x>", {.parse_special = false}).ids, (Ids{6, 6, 6}));
  EXPECT_EQ(t.decode(Ids{0, 9, 1}), "a b");
  EXPECT_EQ(t.decode(Ids{0, 9, 1}, {.skip_special = false}), "a <x> b");
}

TEST(Tokenizer, word_level_knows_whole_words_only) {
  for (const char* type : {R"("type":"WordLevel",)", ""}) {  // old files name no type
    const Tokenizer t =
        Tokenizer::from_json(cat(R"({"pre_tokenizer":{"type":"Whitespace"},"model":{)", type,
                                 R"("vocab":{"ab":0,"é":1,"[UNK]":2},"unk_token":"[UNK]"}})"));
    EXPECT_EQ(ids(t, "ab é abé"), (Ids{0, 1, 2}));
    const Encoding e = t.encode(" é ab", {.offsets = true});
    EXPECT_EQ(e.offsets, (std::vector<Range>{{1, 3}, {4, 6}}));
    EXPECT_EQ(t.decode(Ids{0, 1}), "ab é");
  }
}

// Files name unknown tokens that they do not have; texts that need none are encoded.
TEST(Tokenizer, an_unknown_token_that_is_missing_is_an_error_where_it_is_needed) {
  for (const char* model : {R"("type":"BPE","vocab":{"a":0,"b":1},"merges":[],"unk_token":"<unk>")",
                            R"("type":"WordPiece","vocab":{"a":0,"b":1},"unk_token":"<unk>")",
                            R"("type":"WordLevel","vocab":{"a":0,"b":1},"unk_token":"<unk>")"}) {
    for (const char* words :
         {R"({"type":"Whitespace"})", R"({"type":"ByteLevel","add_prefix_space":false})"}) {
      const Tokenizer t =
          Tokenizer::from_json(cat(R"({"pre_tokenizer":)", words, R"(,"model":{)", model, "}}"));
      EXPECT_EQ(ids(t, "a"), Ids{0}) << model;
      try {
        (void)t.encode("c");
        ADD_FAILURE() << model;
      } catch (const Error& e) {
        EXPECT_NE(
            e.message().find("'c' has no token, and the unknown token '<unk>' is not in the vocabulary"),
            std::string::npos)
            << e.message();
      }
    }
  }
}

TEST(Tokenizer, bytes_of_unknown_characters_have_the_place_of_all_of_them_in_unigram) {
  std::string vocab = R"(["<unk>",0],["a",-1])";
  for (const char* byte : {"<0xC3>", "<0xA9>", "<0x78>"}) vocab += cat(",[\"", byte, "\",-5]");
  const Tokenizer t = Tokenizer::from_json(
      cat(R"({"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[)", vocab, "]}}"));
  const Encoding e = t.encode("aéxa", {.offsets = true});
  EXPECT_EQ(e.ids, (Ids{1, 2, 3, 4, 1}));
  EXPECT_EQ(e.offsets, (std::vector<Range>{{0, 1}, {1, 4}, {1, 4}, {1, 4}, {4, 5}}));
  EXPECT_EQ(ids(t, "a<unk>a"), (Ids{1, 0, 1}));  // not the bytes of its name
}

// Spaces that a token takes from its right may be tokens themselves; they count, as in Hugging Face tokenizers 0.23.
TEST(Tokenizer, tokens_in_spaces_that_another_takes_are_found) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"added_tokens":[{"id":2,"content":"  ","rstrip":true,"normalized":false}],
          "model":{"type":"BPE","vocab":{"a":0," ":1},"merges":[]}})");
  EXPECT_EQ(ids(t, "a  a"), (Ids{0, 2, 0}));
  EXPECT_EQ(ids(t, "a   a"), (Ids{0, 2, 0}));
  EXPECT_EQ(ids(t, "a    a"), (Ids{0, 2, 2, 0}));
}

// A token that takes the spaces on both sides finds none left behind itself, and is no token of nothing.
TEST(Tokenizer, a_token_in_spaces_that_another_took_from_both_sides_is_gone) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"added_tokens":[{"id":2,"content":"\n","lstrip":true,"rstrip":true,"normalized":false}],
          "model":{"type":"BPE","vocab":{"a":0," ":1},"merges":[]}})");
  EXPECT_EQ(ids(t, "a\n\na"), (Ids{0, 2, 0}));
  EXPECT_EQ(ids(t, "a \n \n\n a"), (Ids{0, 2, 0}));
  EXPECT_EQ(ids(t, "a\na\n"), (Ids{0, 2, 0, 2}));
}

// Where a normaliser took the front of the text away, what is left is not its start.
TEST(Tokenizer, the_first_mark_stands_before_the_first_character_of_the_text_alone) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"normalizer":{"type":"Strip","strip_left":true,"strip_right":true},
          "pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true},
          "model":{"type":"BPE","vocab":{"a":0,"▁":1},"merges":[]}})");
  for (const bool offsets : {false, true}) {
    EXPECT_EQ(t.encode("a a ", {.offsets = offsets}).ids, (Ids{1, 0, 1, 0}));
    EXPECT_EQ(t.encode(" a a", {.offsets = offsets}).ids, (Ids{0, 1, 0}));
  }
}

// Of the numbers that are no digits, \w of Oniguruma has those of Latin-1: a word is "½x½", and "①" is none.
TEST(Tokenizer, words_of_patterns_are_those_of_oniguruma) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Isolated"},
          "model":{"type":"BPE","vocab":{"x":0,"½":1,"½x":2,"²":3,"x²":4,"①":5,"x①":6,"🅐":7,"x🅐":8},
                   "merges":["½ x","x ²","x ①","x 🅐"]}})");
  EXPECT_EQ(ids(t, "½x½"), (Ids{2, 1}));
  EXPECT_EQ(ids(t, "x²"), (Ids{4}));
  EXPECT_EQ(ids(t, "x①"), (Ids{0, 5}));
  EXPECT_EQ(ids(t, "x🅐"), (Ids{8}));
}

// As Hugging Face tokenizers does since 0.23; the name of the token stays what the file says.
TEST(Tokenizer, normalised_tokens_are_decoded_in_the_form_that_was_found) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"normalizer":{"type":"Lowercase"},"decoder":{"type":"Fuse"},
          "added_tokens":[{"id":1,"content":"Foo","normalized":true},{"id":2,"content":"Bar","normalized":false}],
          "model":{"type":"BPE","vocab":{"a":0},"merges":[]}})");
  EXPECT_EQ(ids(t, "aFOOBara"), (Ids{0, 1, 2, 0}));
  EXPECT_EQ(t.decode(Ids{0, 1, 2, 0}), "afooBara");
  EXPECT_EQ(t.decode(Ids{1, 0}), "fooa");
  EXPECT_EQ(t.token_to_id("Foo"), 1);
  EXPECT_EQ(t.id_to_token(1), "Foo");
}

// GPT-NeoX has added tokens of several spaces; the answers are those of Hugging Face tokenizers 0.23.
TEST(Tokenizer, offsets_of_added_spaces_are_trimmed_with_those_of_the_vocabulary) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"added_tokens":[{"id":5,"content":"  ","normalized":true},{"id":6,"content":"\u3000b"}],
          "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
          "post_processor":{"type":"ByteLevel","trim_offsets":true,"add_prefix_space":false},
          "model":{"type":"BPE","vocab":{"a":0,"b":1,"Ġ":2,"Ġa":3},"merges":["Ġ a"]}})");
  const auto offsets = [&](std::string_view text) { return t.encode(text, {.offsets = true}).offsets; };
  EXPECT_EQ(offsets("  "), (std::vector<Range>{{2, 2}}));
  EXPECT_EQ(offsets("a   a"), (std::vector<Range>{{0, 1}, {3, 3}, {4, 5}}));
  EXPECT_EQ(offsets("a\u3000b"), (std::vector<Range>{{0, 1}, {4, 5}}));
}

TEST(Tokenizer, decoding_an_id_without_a_token_is_an_error) {
  const Tokenizer t = Tokenizer::from_json(small_bpe());
  EXPECT_THROW((void)t.decode(Ids{8}), Error);
  EXPECT_THROW((void)t.decode(Ids{-1}), Error);
  EXPECT_THROW((void)t.decode(Ids{1000000}), Error);
}

TEST(Tokenizer, truncates_and_pads_as_the_file_says) {
  const Tokenizer t =
      Tokenizer::from_json(small_bpe(R"(,"truncation":{"max_length":3,"strategy":"LongestFirst"},
                  "padding":{"strategy":"BatchLongest","pad_id":7,"pad_to_multiple_of":4,"direction":"Left"})"));
  EXPECT_EQ(ids(t, "a a a a"), (Ids{7, 0, 5, 0}));
  const Encoding e = t.encode("b");
  EXPECT_EQ(e.attention_mask, (std::vector<uint8_t>{0, 0, 0, 1}));
  const std::vector<std::string> texts{"a", "c c"};
  const auto batch = t.encode_batch(texts, {}, 2);
  EXPECT_EQ(batch[0].ids, (Ids{7, 7, 7, 0}));
  EXPECT_EQ(batch[1].ids, (Ids{7, 2, 5, 2}));
  EXPECT_THROW((void)t.encode_batch(texts, {}, 0), Error);
}

TEST(Tokenizer, a_pair_gets_the_frame_and_types_of_the_template) {
  Tokenizer t = Tokenizer::from_json(
      small_bpe(R"(,"post_processor":{"type":"BertProcessing","sep":["b",1],"cls":["a",0]})"));
  const Encoding e = t.encode_pair("c", "cc");
  EXPECT_EQ(e.ids, (Ids{0, 2, 1, 2, 2, 1}));
  EXPECT_EQ(e.type_ids, (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(e.special_mask, (std::vector<uint8_t>{1, 0, 1, 0, 0, 1}));
  t.set_truncation(Truncation{.max_length = 5});
  EXPECT_EQ(t.encode_pair("cc", "cc").ids, (Ids{0, 2, 1, 2, 1}));
  t.set_truncation(Truncation{.max_length = 4, .strategy = Truncation::Strategy::only_second});
  EXPECT_THROW((void)t.encode_pair("ccc", "c"), Error);
}

TEST(Tokenizer, offsets_point_into_the_text_through_normalisation) {
  const Tokenizer t = Tokenizer::from_json(
      small_bpe(R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"Strip"},
                    {"type":"Replace","pattern":{"Regex":"x+"},"content":"ab"},{"type":"Prepend","prepend":"a"}]})"));
  const Encoding e = t.encode("  BxxxC ", {.offsets = true});
  EXPECT_EQ(e.ids, (Ids{3, 4}));
  EXPECT_EQ(e.offsets, (std::vector<Range>{{2, 3}, {5, 7}}));
}

TEST(Tokenizer, reads_a_sentencepiece_model_and_refuses_broken_ones) {
  // pieces <unk> (unknown), ▁ab, a, b, ▁; model type 2 (bpe), no extra space removal
  const auto piece = [](std::string_view text, uint8_t type, uint32_t score_bits) {
    std::string p;
    p += '\x0A';
    p += char(text.size());
    p += text;
    p += '\x15';
    for (int i = 0; i < 4; ++i) p += char(score_bits >> (8 * i));
    p += '\x18';
    p += char(type);
    return std::string("\x0A") + char(p.size()) + p;
  };
  const std::string mark = "\xE2\x96\x81";
  std::string model = piece("<unk>", 2, 0) + piece(mark + "ab", 1, 0) + piece("a", 1, 0xBF800000u) +
                      piece("b", 1, 0xC0000000u) + piece(mark, 1, 0xC0400000u) + piece("ab", 1, 0xBF000000u);
  model += std::string("\x12\x02\x18\x02", 4);
  model += std::string("\x1A\x02\x20\x00", 4);
  const Tokenizer t = Tokenizer::from_sentencepiece(model);
  EXPECT_EQ(ids(t, "ab b"), (Ids{1, 4, 3}));
  EXPECT_EQ(ids(t, "zz"), (Ids{4, 0}));
  EXPECT_EQ(t.decode(ids(t, "ab b")), "ab b");
  for (size_t cut = 1; cut < model.size(); ++cut) {
    try {
      (void)Tokenizer::from_sentencepiece(std::string_view(model).substr(0, cut));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::user);
    }
  }
  EXPECT_THROW((void)Tokenizer::from_sentencepiece("\x0A\xFF\xFF\xFF\xFF\x0F"), Error);
  EXPECT_THROW((void)Tokenizer::from_sentencepiece(std::string(12, '\xFF')), Error);
  EXPECT_THROW((void)Tokenizer::from_sentencepiece(""), Error);
}

TEST(VocabSpec, lists_are_checked_against_each_other) {
  const auto message = [](const VocabSpec& spec) -> std::string {
    try {
      (void)make_tokenizer(spec, "g");
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message({.model = "gpt2"}), "g: the vocabulary is empty");
  EXPECT_NE(message({.model = "what", .tokens = {"a"}}).find("g: unknown tokenizer model 'what'"),
            std::string::npos);
  EXPECT_EQ(message({.model = "llama", .tokens = {"a", "b"}, .scores = {1}}),
            "g: there are 1 scores for 2 tokens");
  EXPECT_EQ(message({.model = "gpt2", .tokens = {"a"}, .types = {TokenType::normal, TokenType::normal}}),
            "g: there are 2 token types for 1 tokens");
  EXPECT_EQ(message({.model = "gpt2", .tokens = {"a"}, .bos = 4}), "g: the bos id 4 is outside the 1 tokens");
  EXPECT_EQ(message({.model = "gpt2", .tokens = {"a", "a"}}), "g: token 1 'a' is in the vocabulary twice");
  EXPECT_EQ(message({.model = "gpt2", .tokens = {"a"}, .merges = {"a"}}), "g: merge 0 'a' is not two tokens");
  EXPECT_NE(message({.model = "gpt2", .pre = "new", .tokens = {"a"}}).find("pre-tokenizer 'new'; known: "),
            std::string::npos);
  EXPECT_EQ(message({.model = "gpt2", .tokens = {"a"}, .add_bos = true}),
            "g: the tokenizer adds a bos token and names none");
}

TEST(VocabSpec, builds_the_four_kinds) {
  const std::string mark = "\xE2\x96\x81";
  const Tokenizer gpt2 = make_tokenizer({.model = "gpt2",
                                         .tokens = {"a", "b", "ab", "\xC4\xA0", "<e>"},
                                         .types = {TokenType::normal, TokenType::normal, TokenType::normal,
                                                   TokenType::normal, TokenType::control},
                                         .merges = {"a b"},
                                         .eos = 4,
                                         .add_eos = true},
                                        "g");
  EXPECT_EQ(ids(gpt2, "ab a<e>"), (Ids{2, 3, 0, 4, 4}));
  EXPECT_EQ(gpt2.decode(ids(gpt2, "ab a")), "ab a");
  const Tokenizer t5 =
      make_tokenizer({.model = "t5",
                      .tokens = {"<unk>", mark + "a", "b", "</s>"},
                      .scores = {0, -1, -2, 0},
                      .types = {TokenType::unknown, TokenType::normal, TokenType::normal, TokenType::control},
                      .eos = 3,
                      .unknown = 0},
                     "g");
  EXPECT_EQ(ids(t5, "ab z"), (Ids{1, 2, 0, 3}));
  const Tokenizer bert =
      make_tokenizer({.model = "bert",
                      .tokens = {"[UNK]", "[CLS]", "[SEP]", mark + "hel", "lo", mark + "!"},
                      .types = {TokenType::control, TokenType::control, TokenType::control, TokenType::normal,
                                TokenType::normal, TokenType::normal},
                      .unknown = 0,
                      .separator = 2,
                      .cls = 1},
                     "g");
  EXPECT_EQ(ids(bert, "H\xC3\xA9llo! x"), (Ids{1, 3, 4, 5, 0, 2}));
}

// Trainers write special tokens that stood in the text once more among the pieces. The last of a text is what encoding gives,
// and each id spells its text.
TEST(Tokenizer, of_pieces_with_one_text_the_last_is_used) {
  std::string pieces = R"(["<unk>",0],["<s>",0],["a",-2],["b",-1],["<s>",-3])";
  for (int i = 0; i < 300; ++i) pieces += cat(R"(,["x)", i, R"(",-9])");  // the table of texts grows
  const Tokenizer t =
      Tokenizer::from_json(cat(R"({"model":{"type":"Unigram","unk_id":0,"vocab":[)", pieces, "]}}"));
  EXPECT_EQ(t.encode("a<s>b").ids, (std::vector<TokenId>{2, 4, 3}));
  EXPECT_EQ(t.decode(std::vector<TokenId>{1, 2, 4}), t.decode(std::vector<TokenId>{4, 2, 1}));
}

}  // namespace
}  // namespace rlx::text
