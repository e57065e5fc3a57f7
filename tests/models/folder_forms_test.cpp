// Folders that hold the same model in another form: experts joined to one tensor, the text part of a model that reads pictures.
#include <gtest/gtest.h>

#include "tests/models/folder.h"
#include "tests/support/errors.h"

namespace rlx::test {
namespace {

class JoinedExperts : public testing::TestWithParam<const char*> {};

TEST_P(JoinedExperts, TheSameLogits) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const Scratch scratch;
  Folder f(GetParam());
  const models::Config c = models::open_model(f.path).config();
  int64_t joined = 0;
  for (int64_t i = 0; i < c.layers; ++i) {
    if (!c.moe.layers[size_t(i)]) continue;
    const std::string front = cat("model.layers.", i, ".mlp.experts");
    f.join(front, {"gate_proj", "up_proj"}, c.moe.experts, front + ".gate_up_proj");
    f.join(front, {"down_proj"}, c.moe.experts, front + ".down_proj");
    ++joined;
  }
  ASSERT_GT(joined, 0);
  expect_logits(f.write(scratch), f.path);
  // One expert too few is told.
  for (auto& [name, value] : f.tensors)
    if (name.ends_with("experts.down_proj"))
      value =
          Literal::zeros(Shape(DType::f32, {c.moe.experts - 1, value.shape().dim(1), value.shape().dim(2)}));
  EXPECT_NE(
      message_of([&] { models::open_model(f.write(scratch)).graph(); }).find("the configuration asks for"),
      std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, JoinedExperts,
                         testing::Values("qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3"),
                         [](const auto& info) { return std::string(info.param); });

class TextPart : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(TextPart, TheSameLogits) {
  const auto [checkpoint, type] = GetParam();
  RLX_REQUIRE_DATA(std::string("checkpoints/") + checkpoint);
  const Scratch scratch;
  Folder f(checkpoint);
  f.nest(type);
  expect_logits(f.write(scratch), f.path);
  // Only tensors of pictures are let be.
  f.tensors.emplace("model.language_model.layers.0.extra.weight", Literal::zeros(Shape(DType::f32, {4, 4})));
  EXPECT_NE(message_of([&] { models::open_model(f.write(scratch)).graph(); }).find("layers.0.extra.weight"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, TextPart,
                         testing::Values(std::pair("qwen3_5", "qwen3_5"), std::pair("gemma3", "gemma3"),
                                         std::pair("llama", "llava")),
                         [](const auto& info) { return std::string(info.param.first); });

// A text part that is not known is refused under its own name.
TEST(TextPart, OfAnUnknownKindIsRefused) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  const Scratch scratch;
  Folder f("llama");
  const size_t at = f.config.find("\"model_type\": \"llama\"");
  ASSERT_NE(at, f.config.npos);
  f.config.replace(at, 21, "\"model_type\": \"strange_text\"");
  f.nest("strange");
  EXPECT_NE(message_of([&] { models::open_model(f.write(scratch)); }).find("'strange_text' is not known"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::test
