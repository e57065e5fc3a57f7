// Tokenizers of every kind of file, and folders of them.
#include "rlx/text/tokenizer_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "rlx/base/base64.h"
#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/text/json.h"
#include "tests/support/data.h"

namespace rlx::text {
namespace {

using Ids = std::vector<TokenId>;

Ids ids_of(const Value& list) {
  Ids ids;
  for (const Value& v : list.as_list()) ids.push_back(TokenId(v.as_int()));
  return ids;
}

/// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rlx-text-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, std::string_view bytes) const { write_file(path_ + "/" + name, bytes); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string refusal(const std::string& path) {
  try {
    (void)Tokenizer::from_file(path);
    return "accepted";
  } catch (const Error& e) {
    return e.message();
  }
}

const Value& model_of(const Value& tokenizer_json) { return *tokenizer_json.as_dict().find("model"); }

/// Compares with the stored answers of Hugging Face tokenizers for the same vocabulary.
void expect_stored_answers(const Tokenizer& tokenizer, const std::string& name) {
  const Value cases =
      parse_json(read_file(test::data_path("tokenizers/" + name + "/cases.json")), "cases.json");
  for (const Value& item : cases.as_list()) {
    const std::string& text = item.as_dict().find("text")->as_string();
    const Ids ids = ids_of(*item.as_dict().find("ids"));
    EXPECT_EQ(tokenizer.encode(text).ids, ids) << text;
    EXPECT_EQ(tokenizer.decode(ids, {.replace_invalid = true}), item.as_dict().find("decoded")->as_string());
  }
}

std::string special_tokens_map(const Value& tokenizer_json) {
  Dict map;
  List further;
  for (const Value& t : tokenizer_json.as_dict().find("added_tokens")->as_list())
    further.push_back(*t.as_dict().find("content"));
  map.set("additional_special_tokens", Value(std::move(further)));
  std::string out;
  append_json(out, Value(std::move(map)));
  return out;
}

TEST(TokenizerFile, vocab_json_with_merges_is_byte_level_bpe) {
  RLX_REQUIRE_DATA("tokenizers/bpe_gpt2");
  const Value file =
      parse_json(read_file(test::data_path("tokenizers/bpe_gpt2/tokenizer.json")), "tokenizer.json");
  std::string vocab, merges = "#version: 0.2\n";
  append_json(vocab, *model_of(file).as_dict().find("vocab"));
  for (const Value& m : model_of(file).as_dict().find("merges")->as_list())
    merges += m.is_string() ? m.as_string() + "\n"
                            : m.as_list()[0].as_string() + " " + m.as_list()[1].as_string() + "\n";
  const Folder folder;
  folder.write("vocab.json", vocab);
  folder.write("merges.txt", merges);
  folder.write("special_tokens_map.json", special_tokens_map(file));
  expect_stored_answers(Tokenizer::from_file(folder.path()), "bpe_gpt2");
  expect_stored_answers(Tokenizer::from_file(folder.path() + "/vocab.json"), "bpe_gpt2");
}

TEST(TokenizerFile, vocab_txt_is_wordpiece) {
  RLX_REQUIRE_DATA("tokenizers/wordpiece_bert");
  const Value file =
      parse_json(read_file(test::data_path("tokenizers/wordpiece_bert/tokenizer.json")), "tokenizer.json");
  std::map<int64_t, std::string> by_id;
  for (const auto& [token, id] : model_of(file).as_dict().find("vocab")->as_dict())
    by_id[id.as_int()] = token.as_string();
  std::string lines;
  for (const auto& [id, token] : by_id) lines += token + "\n";
  const Folder folder;
  folder.write("vocab.txt", lines);
  expect_stored_answers(Tokenizer::from_file(folder.path()), "wordpiece_bert");
}

TEST(TokenizerFile, vocab_txt_follows_the_config_beside_it) {
  const Folder folder;
  folder.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nA\na\n");
  EXPECT_EQ(Tokenizer::from_file(folder.path()).encode("A").ids, (Ids{1, 4, 2}));
  folder.write("tokenizer_config.json", R"({"do_lower_case": false, "tokenizer_class": "BertTokenizer"})");
  EXPECT_EQ(Tokenizer::from_file(folder.path()).encode("A").ids, (Ids{1, 3, 2}));
  EXPECT_EQ(Tokenizer::from_file(folder.path()).encode_pair("a", "A").ids, (Ids{1, 4, 2, 3, 2}));
}

// Stored answers of tiktoken and mistral-common; data/make_ranked.py made them.
TEST(TokenizerFile, ranks_give_the_ids_of_the_libraries_they_come_from) {
  const std::string data = "tests/text/data/";
  const std::string ranks = read_file(data + "ranks.tiktoken");
  const Folder llama, qwen;
  llama.write("tokenizer.model", ranks);  // Llama 3 has this under the name of a SentencePiece model
  qwen.write("qwen.tiktoken", ranks);
  const Tokenizer llama3 = Tokenizer::from_file(llama.path()), qwen1 = Tokenizer::from_file(qwen.path()),
                  tekken = Tokenizer::from_file(data + "tekken.json");
  const Value cases = parse_json(read_file(data + "ranked_cases.json"), "ranked_cases.json");
  EXPECT_GE(cases.as_list().size(), 15u);
  for (const Value& item : cases.as_list()) {
    const Dict& c = item.as_dict();
    const std::string& text = c.find("text")->as_string();
    const EncodeOptions plain{.add_special = false, .parse_special = false};
    EXPECT_EQ(llama3.encode(text, plain).ids, ids_of(*c.find("llama3"))) << text;
    EXPECT_EQ(qwen1.encode(text, plain).ids, ids_of(*c.find("qwen"))) << text;
    EXPECT_EQ(tekken.encode(text, {.parse_special = false}).ids, ids_of(*c.find("tekken"))) << text;
    EXPECT_EQ(llama3.decode(ids_of(*c.find("llama3"))), text);
    EXPECT_EQ(tekken.decode(ids_of(*c.find("tekken"))), text);
  }
  // The special tokens come after the ranks.
  EXPECT_EQ(llama3.encode("<|eot_id|>").ids, (Ids{420, 429}));
  EXPECT_EQ(qwen1.encode("<|im_start|>").ids, (Ids{421}));
  EXPECT_EQ(tekken.encode("[INST]").ids, (Ids{1, 3}));
  EXPECT_EQ(tekken.id_to_token(7), "<SPECIAL_7>");
}

TEST(TokenizerFile, a_config_beside_the_ranks_names_the_special_tokens) {
  const Folder folder;
  folder.write("x.tiktoken", read_file("tests/text/data/ranks.tiktoken"));
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {"500": {"content": "<end>", "special": true}}})");
  const Tokenizer t = Tokenizer::from_file(folder.path());
  EXPECT_EQ(t.encode("a<end>").ids, (Ids{97, 500}));
  EXPECT_TRUE(t.is_special(500));
}

TEST(TokenizerFile, classes_of_older_folders_frame_their_texts) {
  const std::string vocab = R"({"<s>":0,"</s>":1,"<mask>":2,"a":3,"b":4,"Ġ":5,"ab":6,"Ġa":7})";
  const Folder folder;
  folder.write("vocab.json", vocab);
  folder.write("merges.txt", "a b\nĠ a\n");
  EXPECT_EQ(Tokenizer::from_file(folder.path()).encode("ab a").ids, (Ids{6, 7}));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  const Tokenizer roberta = Tokenizer::from_file(folder.path());
  EXPECT_EQ(roberta.encode("ab <mask>").ids, (Ids{0, 6, 2, 1}));
  EXPECT_EQ(roberta.encode_pair("a", "b").ids, (Ids{0, 3, 1, 1, 4, 1}));
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": true})");
  EXPECT_EQ(Tokenizer::from_file(folder.path()).encode("a").ids, (Ids{0, 7, 1}));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "NoSuchTokenizer"})");
  EXPECT_NE(
      refusal(folder.path()).find("'NoSuchTokenizer' is not known for a vocab.json; known: GPT2Tokenizer"),
      std::string::npos);
}

TEST(TokenizerFile, clip_lowercases_and_ends_words_with_a_mark) {
  const Folder folder;
  folder.write(
      "vocab.json",
      R"({"a":0,"b":1,"a</w>":2,"b</w>":3,"ab</w>":4,"!</w>":5,"<|startoftext|>":6,"<|endoftext|>":7})");
  folder.write("merges.txt", "#version: 0.2\na b</w>\n");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  const Tokenizer t = Tokenizer::from_file(folder.path());
  EXPECT_EQ(t.encode("AB  a!").ids, (Ids{6, 4, 2, 5, 7}));
  EXPECT_EQ(t.decode(Ids{6, 4, 2, 5, 7}), "ab a !");
}

TEST(TokenizerFile, an_older_name_of_a_sentencepiece_model_is_found) {
  const Folder folder;
  folder.write("spiece.model", read_file("tests/text/data/sp_bpe.model"));
  EXPECT_EQ(Tokenizer::from_file(folder.path()).encode("Hello world").ids,
            Tokenizer::from_file("tests/text/data/sp_bpe.model").encode("Hello world").ids);
}

TEST(TokenizerFile, what_is_no_tokenizer_is_named) {
  const Folder folder;
  EXPECT_NE(
      refusal(folder.path()).find("the folder has no tokenizer; looked for tokenizer.json, tokenizer.model"),
      std::string::npos);
  folder.write("x.bin", "\x01\x02\x03");
  EXPECT_NE(refusal(folder.path() + "/x.bin").find("not a tokenizer; known: tokenizer.json, "),
            std::string::npos);
  folder.write("vocab.json", R"({"a": 0})");
  EXPECT_NE(refusal(folder.path()).find("there is no merges.txt beside it"), std::string::npos);
  folder.write("merges.txt", "a b\n");
  EXPECT_NE(refusal(folder.path()).find("merges.txt: line 1: token 'b' is not in the vocabulary"),
            std::string::npos);
  folder.write("merges.txt", "a b c\n");
  EXPECT_NE(refusal(folder.path()).find("merges.txt: line 1: expected two tokens"), std::string::npos);
}

TEST(TokenizerFile, hostile_ranks_are_refused) {
  const auto load = [](std::string_view bytes, std::string_view name) -> std::string {
    try {
      (void)load_tokenizer_file({bytes, name, "f", [](std::string_view) { return std::nullopt; }});
      return "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::user);
      return e.message();
    }
  };
  EXPECT_EQ(load("YQ== 0\nYg== x\n", "a.tiktoken"), "f: line 2: expected base64, a space and a rank");
  EXPECT_NE(load("YQ== 5\nYg== 5\n", "a.tiktoken").find("line 2: rank 5 after 5; ranks rise"),
            std::string::npos);
  EXPECT_NE(load("YQ== 99999999999\n", "a.tiktoken").find("rank 99999999999"), std::string::npos);
  EXPECT_NE(load("YQ== 0\n!!!! 1\n", "a.tiktoken").find("line 2: "), std::string::npos);
  EXPECT_EQ(load("YQ== 0\n", "a.tiktoken"),
            "f: there is no token for the byte 0; a vocabulary of ranks has all 256");
  EXPECT_NE(
      load(R"({"config":{"pattern":".","default_num_special_tokens":9,"default_vocab_size":3},"vocab":[]})",
           "tekken.json")
          .find("default_vocab_size: 3 is less than the 9 special tokens"),
      std::string::npos);
  EXPECT_NE(
      load(R"({"config":{"pattern":".","default_num_special_tokens":-1,"default_vocab_size":3},"vocab":[]})",
           "tekken.json")
          .find("default_num_special_tokens: -1 is not in 0.."),
      std::string::npos);
  // Tokens that are all made of each other: the ways to merge them grow with the square of the file.
  std::string nested;
  std::string token;
  std::vector<std::byte> bytes;
  for (int b = 0; b < 256; ++b) {
    bytes.assign(1, std::byte(b));
    nested += encode_base64(bytes) + " " + std::to_string(b) + "\n";
  }
  for (int i = 0; i < 1500; ++i) {
    bytes.assign(size_t(i) + 2, std::byte('a'));
    nested += encode_base64(bytes) + " " + std::to_string(256 + i) + "\n";
  }
  EXPECT_NE(load(nested, "a.tiktoken").find("bytes; 1 to 1024"), std::string::npos);
}

}  // namespace
}  // namespace rlx::text
