// The files of Sentence Transformers beside a model: poolings, modules, prompts, and how long a text may be.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

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
  const auto module = [](const std::string& kind) {
    return cat(R"([{"idx": 2, "path": "2_More", "type": "sentence_transformers.models.)", kind, "\"}]");
  };
  refused({{"modules.json", module("LSTM")}},
          "is a module 'LSTM'; known: Transformer, Pooling, Dense, Normalize, Dropout");
  const std::string dense = R"({"in_features": 64, "out_features": 2})";
  refused({{"modules.json", module("Dense")}, {"2_More/config.json", dense}},
          "no model.safetensors in this folder");
  refused({{old, R"({"pooling_mode": "mean", "include_prompt": false})"},
           {"config_sentence_transformers.json", R"({"prompts": {"q": "a "}, "default_prompt_name": "q"})"}},
          "is false, and the model has the prompt 'a '");
}

// Layers between the pooling and the norm at the end, each by hand.
TEST(EmbeddingFiles, DenseLayersBehindThePooling) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const Scratch scratch;
  const std::string modules = R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
      {"path": "", "type": "sentence_transformers.models.Normalize"},
      {"path": "3_Dense", "type": "sentence_transformers.base.modules.dense.Dense"}])";
  const std::string path = folder_with(scratch, {{"1_Pooling/config.json", R"({"pooling_mode": "cls"})"}});
  const std::string text = "a b c";
  const auto raw = [&] { return Embedder::open(path, {.normalise = false}).embed(std::span(&text, 1))[0]; };
  const Vector x = raw();
  write_file(path + "/modules.json", modules);
  const auto dense = [&](const std::string& name, int64_t in, const Vector& weight, const Vector& bias,
                         const std::string& activation) {
    std::filesystem::create_directories(path + "/" + name);
    const auto out = int64_t(weight.size()) / in;
    write_file(path + "/" + name + "/config.json",
               cat(R"({"in_features": )", in, R"(, "out_features": )", out,
                   R"(, "bias": true, "activation_function": "torch.nn.modules.)", activation, "\"}"));
    const Literal w = Literal::of<float>({out, in}, weight), b = Literal::of<float>({out}, bias);
    io::write_safetensors(path + "/" + name + "/model.safetensors",
                          std::array{io::to_view("linear.weight", w), io::to_view("linear.bias", b)});
  };
  Vector pick(2 * x.size());  // twice the first number, and the sum of the last two
  pick[0] = 2;
  pick[2 * x.size() - 1] = pick[2 * x.size() - 2] = 1;
  dense("2_Dense", int64_t(x.size()), pick, {0.5f, -0.25f}, "activation.Tanh");
  dense("3_Dense", 2, {1, 2, 3, 4, 5, 6}, {0, 0, 1}, "linear.Identity");
  const double u = std::tanh(2.0 * x[0] + 0.5), v = std::tanh(double(x[x.size() - 2]) + x.back() - 0.25),
               length = std::hypot(u, v);
  const Vector got = raw();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_NEAR(got[0], (u + 2 * v) / length, 1e-5);
  EXPECT_NEAR(got[1], (3 * u + 4 * v) / length, 1e-5);
  EXPECT_NEAR(got[2], (5 * u + 6 * v) / length + 1, 1e-5);
  EXPECT_EQ(Embedder::open(path, {.dimensions = 2}).dimensions(), 2);
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
