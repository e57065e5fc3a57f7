// Folders that hold the same model in another form: experts joined to one tensor, the text part of a model that reads pictures.
#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::test {
namespace {

struct Folder {
  explicit Folder(const std::string& checkpoint) : path(data_path("checkpoints/" + checkpoint)) {
    for (const io::TensorView& t : io::ModelFile::open(path).tensors)
      tensors.emplace(t.name, io::to_literal(t));
    config = read_file(path + "/config.json");
  }

  std::string write(const Scratch& scratch) const {
    const std::string to = scratch.path("model");
    std::filesystem::create_directories(to);
    write_file(to + "/config.json", config);
    std::vector<io::TensorView> views;
    for (const auto& [name, value] : tensors) views.push_back(io::to_view(name, value));
    io::write_safetensors(to + "/model.safetensors", views);
    return to;
  }

  /// Matrices by expert, "FRONT.{e}.PART.weight" for each of the parts in turn, as one tensor `name`.
  void join(const std::string& front, const std::vector<std::string>& parts, int64_t experts,
            const std::string& name) {
    std::vector<float> all;
    int64_t rows = 0, width = 0;
    for (int64_t e = 0; e < experts; ++e) {
      rows = 0;
      for (const std::string& part : parts) {
        const auto it = tensors.find(cat(front, ".", e, ".", part, ".weight"));
        ASSERT_NE(it, tensors.end()) << front << " " << e << " " << part;
        const auto values = it->second.data<float>();
        all.insert(all.end(), values.begin(), values.end());
        rows += it->second.shape().dim(0).value();
        width = it->second.shape().dim(1).value();
        tensors.erase(it);
      }
    }
    tensors.emplace(name, Literal::of<float>({experts, rows, width}, all));
  }

  /// As the part `text_config` of the configuration `type`, beside a part for pictures.
  void nest(const std::string& type) {
    config = cat(R"({"model_type": ")", type,
                 R"(", "image_token_id": 7, "vision_config": {"depth": 2}, "text_config": )", config, "}");
    std::map<std::string, Literal> renamed;
    for (const auto& [name, value] : tensors)
      renamed.emplace(name.starts_with("model.") ? "model.language_model." + name.substr(6) : name, value);
    renamed.emplace("model.visual.blocks.0.attn.proj.weight", Literal::zeros(Shape(DType::f32, {4, 4})));
    tensors = std::move(renamed);
  }

  std::string path, config;
  std::map<std::string, Literal> tensors;
};

void expect_logits(const std::string& path, const std::string& checkpoint) {
  const NamedLiterals want = expected_values(checkpoint + "/expected.safetensors");
  const models::Model model = models::open_model(path);
  const models::ModelGraph g = model.graph();
  const Literal got =
      compile(g.graph, g.weights, options_of(g)).run({{"input_ids", want.at("input_ids")}}).at("logits");
  EXPECT_LT(largest_difference(got, 0, want.at("logits"), 0, want.at("input_ids").elements()),
            kLogitTolerance);
}

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
