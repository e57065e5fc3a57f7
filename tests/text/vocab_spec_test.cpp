// Vocabularies as GGUF files hold them.
#include "rlx/text/vocab_spec.h"

#include <gtest/gtest.h>

#include "rlx/base/error.h"

namespace rlx::text {
namespace {

using Ids = std::vector<TokenId>;

constexpr const char* kMark = "\xE2\x96\x81";

// A SentencePiece vocabulary of bytes, letters and the special tokens of Phi-3.
VocabSpec phi3(std::string name) {
  VocabSpec spec{.model = "llama", .name = std::move(name)};
  const auto add = [&](const std::string& token, TokenType type) {
    spec.tokens.push_back(token);
    spec.types.push_back(type);
    spec.scores.push_back(type == TokenType::normal ? -1.f : 0.f);
    return TokenId(spec.tokens.size() - 1);
  };
  spec.unknown = add("<unk>", TokenType::unknown);   // 0
  spec.bos = add("<s>", TokenType::control);         // 1
  spec.eos = add("</s>", TokenType::control);        // 2
  add("<|endoftext|>", TokenType::control);          // 3
  add("<|user|>", TokenType::control);               // 4
  add("<|end|>", TokenType::user_defined);           // 5
  add(kMark, TokenType::normal);                     // 6
  add("a", TokenType::normal);                       // 7
  add(std::string(kMark) + "a", TokenType::normal);  // 8
  add("\n", TokenType::normal);                      // 9
  return spec;
}

TEST(VocabSpec, special_tokens_of_phi3_take_the_white_space_after_them) {
  const Tokenizer t = make_tokenizer(phi3("Phi-3 mini 4k instruct"), "x");
  EXPECT_EQ(t.encode("<|user|>\na<|end|>\n<|user|>\n").ids, (Ids{1, 4, 8, 5, 4}));
  EXPECT_EQ(t.encode("</s> \n a").ids, (Ids{1, 2, 8}));
  // Three tokens leave it.
  for (const auto& [text, id] : {std::pair{"<s>\n", 1}, {"<unk>\n", 0}, {"<|endoftext|>\n", 3}})
    EXPECT_EQ(t.encode(text).ids, (Ids{1, id, 6, 9})) << text;
  // A model of another name keeps its white space.
  EXPECT_EQ(make_tokenizer(phi3("Llama"), "x").encode("<|user|>\na").ids, (Ids{1, 4, 6, 9, 7}));
}

// As XLNet has brackets and dots: the space before such a piece counts, and pieces of spaces take the one in front of the text.
TEST(VocabSpec, pieces_of_the_user_are_found_in_the_text_that_sentencepiece_normalised) {
  VocabSpec spec = phi3("");
  spec.add_bos = false;
  spec.prefix_every_part = false;
  spec.tokens.push_back(cat(kMark, kMark));  // 10
  spec.types.push_back(TokenType::user_defined);
  spec.scores.push_back(0);
  const auto ids = [&](bool trimmed, std::string_view text) {
    spec.remove_extra_spaces = trimmed;
    return make_tokenizer(spec, "x").encode(text, {.parse_special = false}).ids;
  };
  EXPECT_EQ(ids(true, "a <|end|>a"), (Ids{8, 6, 5, 7}));
  EXPECT_EQ(ids(true, "<|end|> a"), (Ids{6, 5, 8}));
  EXPECT_EQ(ids(false, " a  a"), (Ids{10, 7, 10, 7}));
}

TEST(VocabSpec, mask_tokens_take_the_white_space_before_them_by_name_of_the_model) {
  const auto with_mask = [](const char* mask) {
    VocabSpec spec{.model = "gpt2", .pre = "gpt-2"};
    for (int b = 0; b < 256; ++b) append_utf8(spec.tokens.emplace_back(), byte_to_char(uint8_t(b)));
    spec.types.assign(256, TokenType::normal);
    spec.tokens.push_back(mask);
    spec.types.push_back(TokenType::control);
    return spec;
  };
  VocabSpec modern = with_mask("[MASK]");
  EXPECT_EQ(make_tokenizer(modern, "x").encode("a [MASK]").ids, (Ids{'a', ' ', 256}));
  modern.name = "Modern-BERT base";
  EXPECT_EQ(make_tokenizer(modern, "x").encode("a [MASK]").ids, (Ids{'a', 256}));
  VocabSpec jina = with_mask("<mask>");
  jina.pre = "jina-v2-code";
  EXPECT_EQ(make_tokenizer(jina, "x").encode("a <mask>").ids, (Ids{'a', 256}));
  VocabSpec nomic = with_mask("<mask>");
  nomic.architecture = "nomic-bert-moe";
  EXPECT_EQ(make_tokenizer(nomic, "x").encode("a <mask>").ids, (Ids{'a', 256}));
}

VocabSpec gemma4() {
  VocabSpec spec{.model = "gemma4"};
  const auto add = [&](const std::string& token, TokenType type = TokenType::normal) {
    spec.tokens.push_back(token);
    spec.types.push_back(type);
    return TokenId(spec.tokens.size() - 1);
  };
  add("<pad>", TokenType::control);
  spec.eos = add("<eos>", TokenType::control);
  spec.bos = add("<bos>", TokenType::control);
  for (int b = 0; b < 256; ++b) add(byte_token_name(uint8_t(b)), TokenType::byte);  // 3..258
  for (const char* token : {"\n", "\n\n", "\n\n\n", "a", "b", kMark}) add(token);   // 259..264
  add("ab");                                                                        // 265
  add(std::string(kMark) + "ab");                                                   // 266
  spec.merges = {"a b", std::string(kMark) + " ab", "\n \n"};
  return spec;
}

TEST(VocabSpec, gemma4_merges_characters_and_marks_spaces) {
  const Tokenizer t = make_tokenizer(gemma4(), "x");
  EXPECT_EQ(t.encode("ab ab").ids, (Ids{2, 265, 266}));
  EXPECT_EQ(t.encode("é").ids, (Ids{2, 3 + 0xC3, 3 + 0xA9}));    // bytes of what has no token
  EXPECT_EQ(t.encode("a\n\n\nb").ids, (Ids{2, 262, 261, 263}));  // a run of line ends that is a token
  EXPECT_EQ(t.encode("\n\n\n\n").ids, (Ids{2, 260, 260}));       // and one that is none
  EXPECT_EQ(t.decode(t.encode(" ab é\n").ids), " ab é\n");
  VocabSpec no_bos = gemma4();
  no_bos.add_bos = false;  // files of this kind were made with the wrong flag
  EXPECT_EQ(make_tokenizer(no_bos, "x").encode("a").ids, (Ids{2, 262}));
}

TEST(VocabSpec, unused_tokens_of_a_unigram_vocabulary_are_never_found_in_a_text) {
  VocabSpec spec{.model = "t5"};
  spec.tokens = {"<pad>", "</s>", "<unk>", kMark, "a", "b", "ab", "[PAD7]"};
  spec.scores = {0, 0, 0, -1, -2, -2, 0, 0};
  spec.types = {TokenType::control, TokenType::control, TokenType::unknown, TokenType::normal,
                TokenType::normal,  TokenType::normal,  TokenType::unused,  TokenType::unused};
  spec.eos = 1;
  const Tokenizer t = make_tokenizer(spec, "x");
  EXPECT_EQ(t.encode("ab").ids, (Ids{3, 4, 5, 1}));
  EXPECT_EQ(t.id_to_token(7), "[PAD7]");
  EXPECT_EQ(t.decode(Ids{4, 6}), "aab");
}

TEST(VocabSpec, an_unused_token_of_a_bpe_vocabulary_is_a_step_to_longer_ones) {
  VocabSpec spec{.model = "llama", .add_space_prefix = false};
  spec.tokens = {"<unk>", "a", "b", "c", "ab", "abc", "abab"};
  spec.scores = {0, -9, -9, -9, -1, -2, -3};
  spec.types.assign(7, TokenType::normal);
  spec.types[0] = TokenType::unknown;
  spec.types[4] = TokenType::unused;
  const Tokenizer t = make_tokenizer(spec, "x");
  EXPECT_EQ(t.encode("abc").ids, (Ids{5}));
  EXPECT_EQ(t.encode("ab").ids, (Ids{1, 2}));
  EXPECT_EQ(t.encode("abab").ids, (Ids{6}));
  EXPECT_EQ(t.encode("cab").ids, (Ids{3, 1, 2}));
}

TEST(VocabSpec, special_tokens_that_are_text_leave_what_is_inside_them_to_others) {
  VocabSpec spec{.model = "gpt2", .pre = "gpt-2"};
  for (int b = 0; b < 256; ++b) append_utf8(spec.tokens.emplace_back(), byte_to_char(uint8_t(b)));
  spec.types.assign(256, TokenType::normal);
  for (const auto& [token, type] : {std::pair{"<x>", TokenType::control}, {"x>", TokenType::user_defined}}) {
    spec.tokens.push_back(token);
    spec.types.push_back(type);
  }
  const Tokenizer t = make_tokenizer(spec, "x");
  EXPECT_EQ(t.encode("<x><").ids, (Ids{256, '<'}));
  EXPECT_EQ(t.encode("<x><", {.parse_special = false}).ids, (Ids{'<', 257, '<'}));
}

TEST(VocabSpec, bert_keeps_case_when_the_file_says_so) {
  VocabSpec spec{.model = "bert"};
  spec.tokens = {"[UNK]",
                 "[CLS]",
                 "[SEP]",
                 std::string(kMark) + "a",
                 std::string(kMark) + "A",
                 std::string(kMark) + "é"};
  spec.types.assign(6, TokenType::normal);
  for (int i = 0; i < 3; ++i) spec.types[size_t(i)] = TokenType::control;
  spec.unknown = 0, spec.cls = 1, spec.separator = 2;
  EXPECT_EQ(make_tokenizer(spec, "x").encode("A é").ids, (Ids{1, 3, 0, 2}));
  spec.lowercase = false;
  EXPECT_EQ(make_tokenizer(spec, "x").encode("A é").ids, (Ids{1, 4, 5, 2}));
}

// As llama.cpp reads them: such a token takes part in merges, and where it is left over its bytes stand for it.
TEST(VocabSpec, merges_may_lead_to_tokens_that_the_vocabulary_lacks) {
  VocabSpec spec{.model = "gpt2", .pre = "smollm"};
  spec.tokens = {"a", "b", "c", "d", "Ġ", "bc", "abcd"};
  spec.types.assign(spec.tokens.size(), TokenType::normal);
  spec.merges = {"a b", "b c", "ab c", "abc d", "Ġ a"};
  const Tokenizer t = make_tokenizer(spec, "x");
  EXPECT_EQ(t.encode("bc").ids, Ids{5});
  EXPECT_EQ(t.encode("abc").ids, (Ids{0, 1, 2}));  // not a, bc: the first merge took the b
  EXPECT_EQ(t.encode("abcd").ids, Ids{6});
  EXPECT_EQ(t.encode("d ad").ids, (Ids{3, 0, 3}));  // the space has no spelling of its own
  EXPECT_EQ(t.vocab_size(), 7u);
}

}  // namespace
}  // namespace rlx::text
