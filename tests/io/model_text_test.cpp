// Tokenizers and chat templates of models on disk. The files and answers are those of tests/text.
#include "rlx/io/model_text.h"

#include <gtest/gtest.h>

#include <fstream>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/io/model_file.h"
#include "rlx/text/json.h"
#include "tests/io/gguf_bytes.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

class GgufVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(GgufVocabulary, gives_the_ids_of_the_sentencepiece_package) {
  const std::string name = GetParam();
  const text::Tokenizer t = load_tokenizer("tests/text/data/" + name + ".gguf");
  const text::Value file = text::parse_json(read_file("tests/text/data/sp_cases.json"), "sp_cases.json");
  for (const text::Value& row : file.as_dict().find("models")->as_dict().find(name)->as_list()) {
    const text::List& c = row.as_list();
    std::vector<text::TokenId> expected;
    for (const text::Value& id : c[1].as_list()) expected.push_back(text::TokenId(id.as_int()));
    EXPECT_EQ(t.encode(c[0].as_string(), {.add_special = false, .parse_special = false}).ids, expected)
        << c[0].as_string();
    EXPECT_EQ(t.decode(expected, {.replace_invalid = true}), c[2].as_string()) << c[0].as_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Io, GgufVocabulary, testing::Values("sp_bpe", "sp_unigram"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ModelText, the_frame_is_what_the_file_says) {
  EXPECT_EQ(load_tokenizer("tests/text/data/sp_bpe.gguf").encode("a").ids.front(), 1);
  EXPECT_EQ(load_tokenizer("tests/text/data/sp_unigram.gguf").encode("a").ids.back(), 2);
}

TEST(ModelText, a_chat_template_comes_with_the_tokens_it_names) {
  const ModelTemplate gguf = load_chat_template("tests/text/data/sp_bpe.gguf");
  EXPECT_EQ(gguf.bos_token, "<s>");
  EXPECT_EQ(gguf.eos_token, "</s>");
  const ModelTemplate folder = load_chat_template("tests/text/cli/folder");
  EXPECT_EQ(folder.bos_token, "<|bos|>");
  EXPECT_EQ(folder.eos_token, "<|eot|>");
  EXPECT_EQ(load_chat_template("tests/text/cli/folder", "tool_use").source,
            "{{ tools | tojson }}{{ messages[-1]['content'] }}");
}

std::string refusal(const std::string& bytes) {
  const test::Scratch folder;
  std::ofstream(folder.path("x.gguf"), std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  try {
    (void)load_tokenizer(folder.path("x.gguf"));
    (void)load_chat_template(folder.path("x.gguf"));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    return e.what();
  }
  return "accepted";
}

TEST(ModelText, ids_and_types_of_the_metadata_are_checked) {
  const auto file = [](int64_t bos, int32_t type) {
    GgufBytes b(3, 0, 5);
    b.text("tokenizer.ggml.model").put(uint32_t(8)).text("gpt2");
    b.text("tokenizer.ggml.tokens").put(uint32_t(9)).put(uint32_t(8)).put(uint64_t(1)).text("a");
    b.text("tokenizer.ggml.token_type").put(uint32_t(9)).put(uint32_t(5)).put(uint64_t(1)).put(type);
    b.text("tokenizer.ggml.bos_token_id").put(uint32_t(11)).put(bos);
    b.text("tokenizer.chat_template").put(uint32_t(8)).text("{{ bos_token }}");
    return b.bytes;
  };
  EXPECT_EQ(refusal(file(0, 1)), "accepted");
  EXPECT_NE(refusal(file(0, 77)).find("gguf: token type 77 is unknown"), std::string::npos);
  EXPECT_NE(refusal(file(-1, 1)).find("tokenizer.ggml.bos_token_id is -1, which is no token id"),
            std::string::npos);
  EXPECT_NE(refusal(file(int64_t(1) << 40, 1)).find("which is no token id"), std::string::npos);
  EXPECT_NE(refusal(file(9, 1)).find("the bos id 9 is outside the 1 tokens"), std::string::npos);
}

TEST(ModelText, files_without_a_tokenizer_or_template_say_so) {
  const test::Scratch folder;
  write_safetensors(folder.path("x.safetensors"), {});
  const std::string name = "'" + folder.path("x.safetensors") + "' is a file of tensors (safetensors)";
  EXPECT_EQ(test::message_of([&] { load_tokenizer(folder.path("x.safetensors")); }),
            name + " and holds no tokenizer");
  EXPECT_EQ(test::message_of([&] { load_chat_template(folder.path("x.safetensors")); }),
            name + " and holds no chat template");
  write_file(folder.path("x.bin"), std::string_view("{{\0}}", 5));
  EXPECT_EQ(test::message_of([&] { load_chat_template(folder.path("x.bin")); }),
            folder.path("x.bin") +
                ": not a chat template: the file is no text; give a GGUF file, a model folder or a template");
  write_file(folder.path("x.jinja"), "{{ 1 }}");
  EXPECT_EQ(load_chat_template(folder.path("x.jinja")).source, "{{ 1 }}");
}

TEST(ModelText, a_model_file_gives_its_tokenizer_and_its_template) {
  const ModelFile file = ModelFile::open("tests/text/data/sp_bpe.gguf");
  EXPECT_EQ(file.tokenizer().encode("a").ids, load_tokenizer("tests/text/data/sp_bpe.gguf").encode("a").ids);
  EXPECT_EQ(file.chat_template().bos_token, "<s>");
}

}  // namespace
}  // namespace rlx::io
