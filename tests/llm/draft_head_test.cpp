// The draft head of Qwen3-Next and Qwen3.5. The stored checkpoints have none: one is added.
#include "rlx/llm/draft_head.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "rlx/llm/language_model.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::llm {
namespace {

using Ids = std::vector<TokenId>;
using Tensors = std::map<std::string, Literal>;

// The model with a head whose layer is that of its last layer of attention.
struct WithHead {
  explicit WithHead(const std::string& name) : folder(test::data_path("checkpoints/" + name)) {
    for (const io::TensorView& t : io::ModelFile::open(folder).tensors)
      tensors.emplace(t.name, io::to_literal(t));
    const std::string layer = "model.layers.3.";
    Tensors more;
    for (const auto& [key, value] : tensors)
      if (key.starts_with(layer)) more.emplace("mtp.layers.0." + key.substr(layer.size()), value);
    tensors.merge(more);
    hidden = tensors.at("model.norm.weight").shape().dim(0).value();
    tensors["mtp.norm.weight"] = tensors.at("model.norm.weight");
    tensors["mtp.pre_fc_norm_embedding.weight"] = tensors["mtp.pre_fc_norm_hidden.weight"] =
        Literal::zeros(Shape(DType::f32, {hidden}));
    tensors["mtp.fc.weight"] = ir::sample_literal(cat("f32[", hidden, ",", 2 * hidden, "]"), 5);
  }

  // fc picks the embedding, or what the model made of the token before; the layer adds nothing.
  void pass_on(bool embedding) {
    std::vector<double> fc(size_t(2 * hidden * hidden), 0);
    for (int64_t i = 0; i < hidden; ++i) fc[size_t(i * 2 * hidden + i + (embedding ? 0 : hidden))] = 1;
    tensors["mtp.fc.weight"] = Literal::reals(Shape(DType::f32, {hidden, 2 * hidden}), fc);
    for (auto& [key, value] : tensors)
      if (key.starts_with("mtp.layers.") &&
          (key.ends_with("o_proj.weight") || key.ends_with("down_proj.weight")))
        value = Literal::zeros(value.shape());
  }

  std::string write(const test::Scratch& scratch) const {
    const std::string path = scratch.path("model");
    std::filesystem::create_directories(path);
    std::filesystem::copy_file(folder + "/config.json", path + "/config.json",
                               std::filesystem::copy_options::overwrite_existing);
    std::vector<io::TensorView> views;
    for (const auto& [key, value] : tensors) views.push_back(io::to_view(key, value));
    io::write_safetensors(path + "/model.safetensors", views);
    return path;
  }

  std::string folder;
  Tensors tensors;
  int64_t hidden = 0;
};

GenerateOptions greedy(int64_t tokens, int64_t mtp = 0) {
  return {.max_tokens = tokens, .sampling = {.temperature = 0}, .ignore_end = true, .mtp = mtp};
}

class DraftHeads : public testing::TestWithParam<const char*> {};

TEST_P(DraftHeads, ChangeNoToken) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  LanguageModel model = LanguageModel::open(WithHead(GetParam()).write(scratch), {.context = 96});
  EXPECT_TRUE(model.model().has_draft());
  Ids prompt{5, 9, 100, 7, 30, 31, 8};
  for (const int64_t guesses : {1, 2, 5}) {
    const Generation plain = model.generate_ids(prompt, greedy(24)),
                     drafted = model.generate_ids(prompt, greedy(24, guesses));
    EXPECT_EQ(drafted.tokens, plain.tokens) << guesses << " guesses";
    EXPECT_LE(drafted.runs, plain.runs);
    // On with the text, part of which is remembered.
    prompt.insert(prompt.end(), plain.tokens.begin(), plain.tokens.begin() + 5);
    prompt.push_back(TokenId(40 + guesses));
  }
}

// With nothing but what the model made of the token before, and the model's own norm, the head repeats the model's choice.
TEST_P(DraftHeads, ReadWhatTheModelMadeOfTheTokenBefore) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  WithHead files(GetParam());
  files.pass_on(false);
  const models::Model model = models::open_model(files.write(scratch));
  Decoder d(model, {.capacity = 64, .draft_hidden = true});
  DraftHead head(model, 1, 64, {});
  Ids text{5, 9, 100, 7};
  for (int64_t step = 0; step < 6; ++step) {
    const int64_t before = d.length();
    const TensorView logits = d.feed(std::span(text).subspan(size_t(before)));
    head.follow(before, d.draft_hidden());
    const auto row = logits.as<const float>();
    text.push_back(TokenId(std::max_element(row.begin(), row.end()) - row.begin()));
    EXPECT_EQ(head.guess(text, 4), Ids{text.back()}) << "step " << step;
  }
}

// With the embedding alone the guess depends on the last token and nothing else.
TEST_P(DraftHeads, ReadTheLastToken) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const test::Scratch scratch;
  WithHead files(GetParam());
  files.pass_on(true);
  const models::Model model = models::open_model(files.write(scratch));
  const auto guess_behind = [&](const Ids& text) {
    Decoder d(model, {.capacity = 64, .draft_hidden = true});
    DraftHead head(model, 2, 64, {});
    d.feed(std::span(text).first(text.size() - 1));
    head.follow(0, d.draft_hidden());
    return head.guess(text, 2);
  };
  EXPECT_EQ(guess_behind({5, 9, 77}), guess_behind({100, 3, 8, 77}));
  EXPECT_NE(guess_behind({5, 9, 77}), guess_behind({5, 9, 78}));
}

INSTANTIATE_TEST_SUITE_P(Models, DraftHeads, testing::Values("qwen3next", "qwen3_5"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DraftHead, AModelWithoutOneIsRefused) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = LanguageModel::open(test::data_path("checkpoints/llama"));
  EXPECT_NE(test::message_of([&] { model.generate_ids(Ids{1, 2}, greedy(4, 2)); }).find("has no draft head"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::llm
