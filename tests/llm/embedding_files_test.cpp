// The files of Sentence Transformers beside a model: poolings, modules, prompts, and how long a text may be.
#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/llm/embedding.h"
#include "tests/models/folder.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

using test::Scratch;
using Files = std::map<std::string, std::string>;
using Vector = std::vector<float>;

constexpr std::string_view kTokenizer =
    R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"a": 5, "b": 6, "c": 7, "A": 8}, "unk_token": "a"}})";

std::string folder_with(const Scratch& scratch, const Files& files, const std::string& checkpoint = "bert") {
  const std::string path = test::Folder(checkpoint).write(scratch);
  write_file(path + "/tokenizer.json", kTokenizer);
  for (const auto& [name, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(path + "/" + name).parent_path());
    write_file(path + "/" + name, text);
  }
  return path;
}

Vector embedded(const Files& files, const std::string& text, const std::string& checkpoint = "bert") {
  const Scratch scratch;
  return Embedder::open(folder_with(scratch, files, checkpoint)).embed(std::span(&text, 1))[0];
}

Pooling pooling_with(const Files& files) {
  const Scratch scratch;
  return Embedder::open(folder_with(scratch, files)).pooling();
}

TEST(EmbeddingFiles, PoolingsInOldAndNewWords) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const std::string old = "1_Pooling/config.json";
  EXPECT_EQ(pooling_with({}), Pooling::mean);
  EXPECT_EQ(pooling_with({{old, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})"}}),
            Pooling::first);
  EXPECT_EQ(pooling_with({{old, R"({"pooling_mode": "lasttoken"})"}}), Pooling::last);
  const std::string modules = R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "path": "9_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"idx": 2, "path": "10_Normalize", "type": "sentence_transformers.models.Normalize"}])";
  EXPECT_EQ(pooling_with({{"modules.json", modules},
                          {old, R"({"pooling_mode": "cls"})"},
                          {"9_Pooling/config.json", R"({"pooling_mode": "lasttoken"})"}}),
            Pooling::last);
}

TEST(EmbeddingFiles, WhatIsNotComputedIsRefused) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const auto refused = [](const Files& files, const std::string& part) {
    const std::string message = test::message_of([&] { pooling_with(files); });
    EXPECT_NE(message.find(part), message.npos) << message;
  };
  const std::string old = "1_Pooling/config.json";
  refused({{old, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})"}},
          "asks for the pooling 'cls_token and mean_tokens'; one of cls, lasttoken and mean expected");
  refused({{old, R"({"pooling_mode_cls_token": false, "pooling_mode_max_tokens": true})"}},
          "asks for the pooling 'max_tokens'");
  refused(
      {{"modules.json", R"([{"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"}])"}},
      "is a module 'Dense'; known: Transformer, Pooling, Normalize, Dropout");
  refused({{old, R"({"pooling_mode": "mean", "include_prompt": false})"},
           {"config_sentence_transformers.json", R"({"prompts": {"q": "a "}, "default_prompt_name": "q"})"}},
          "is false, and the model has the prompt 'a '");
}

TEST(EmbeddingFiles, TextsAreCutAndChangedAsTheySay) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const std::string settings = "sentence_bert_config.json";
  EXPECT_EQ(embedded({{settings, R"({"max_seq_length": 2, "do_lower_case": false})"}}, "a b c"),
            embedded({}, "a b"));
  EXPECT_EQ(embedded({{"tokenizer_config.json", R"({"model_max_length": 2})"}}, "a b c"),
            embedded({}, "a b"));
  EXPECT_EQ(embedded({{settings, R"({"max_seq_length": null, "do_lower_case": true})"}}, "A b"),
            embedded({}, "a b"));
  EXPECT_NE(embedded({}, "A b"), embedded({}, "a b"));
  const std::string prompts =
      R"({"prompts": {"query": "c ", "document": ""}, "default_prompt_name": "query"})";
  EXPECT_EQ(embedded({{"config_sentence_transformers.json", prompts}}, "a b"), embedded({}, "c a b"));
}

// Positions up to that of padding are not used.
TEST(EmbeddingFiles, LongTextsOfRobertaAreCut) {
  RLX_REQUIRE_DATA("checkpoints/roberta");
  const int64_t positions = models::open_model(test::data_path("checkpoints/roberta")).config().max_positions;
  std::string text;
  for (int64_t i = 0; i < positions + 5; ++i) text += "a ";
  const Vector v = embedded({}, text, "roberta");
  EXPECT_EQ(v, embedded({}, text.substr(0, size_t(2 * (positions - 2))), "roberta"));
}

}  // namespace
}  // namespace rlx::llm
