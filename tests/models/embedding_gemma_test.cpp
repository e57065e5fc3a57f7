// Gemma 3 whose tokens see those behind them, as embedding models have it.
#include "tests/models/folder.h"
#include "tests/models/gguf_form.h"
#include "tests/support/errors.h"

namespace rlx::test {
namespace {

NamedLiterals results_of(const models::Model& model, const NamedLiterals& in) {
  const models::ModelGraph g = model.graph({.mask = in.contains("mask")});
  return compile(g.graph, g.weights, options_of(g)).run(in);
}

std::string written(const Scratch& scratch) {
  Folder f("gemma3");
  f.set("use_bidirectional_attention", "true");
  return f.write(scratch);
}

// Windows of 8 reach four tokens to each side. The values are those of transformers 5.23.
TEST(EmbeddingGemma, HiddenStates) {
  RLX_REQUIRE_DATA("checkpoints/gemma3");
  const Scratch scratch;
  const models::Model model = models::open_model(written(scratch));
  EXPECT_TRUE(model.config().encoder);
  const Literal ids = expected_values(data_path("checkpoints/gemma3/expected.safetensors")).at("input_ids");
  const NamedLiterals got = results_of(model, {{"input_ids", ids}});
  const float want[] = {0.35877398f, -0.03284856f, 0.59634787f, -0.47192925f, -0.07560749f, 0.71312439f};
  for (size_t i = 0; i < std::size(want); ++i)
    EXPECT_NEAR(got.at("mean_pooled").data<float>()[i], want[i], 1e-5) << i;
  EXPECT_NE(message_of([&] { model.graph({.capacity = 16}); }).find("has no states"), std::string::npos);
}

TEST(EmbeddingGemma, PaddingIsNotSeen) {
  RLX_REQUIRE_DATA("checkpoints/gemma3");
  const Scratch scratch;
  const models::Model model = models::open_model(written(scratch));
  const auto pooled = [&](const std::vector<int32_t>& ids, const std::vector<int32_t>& mask) {
    const Dims dims{1, int64_t(ids.size())};
    return results_of(model, {{"input_ids", Literal::of<int32_t>(dims, ids)},
                              {"mask", Literal::of<int32_t>(dims, mask)}})
        .at("mean_pooled");
  };
  EXPECT_LT(largest_difference(pooled({5, 9, 11, 6, 0, 0}, {1, 1, 1, 1, 0, 0}), 0,
                               pooled({5, 9, 11, 6}, {1, 1, 1, 1}), 0, 1),
            1e-5);
}

TEST(EmbeddingGemma, AsGguf) {
  RLX_REQUIRE_DATA("checkpoints/gemma3");
  const Scratch scratch;
  const models::Model folder = models::open_model(written(scratch));
  const std::string path = scratch.path("model.gguf");
  write_gguf_form(folder, path);
  const models::Model file = models::open_model(path);
  EXPECT_EQ(file.file().architecture(), "gemma-embedding");
  const NamedLiterals in{
      {"input_ids", Literal::of<int32_t>({1, 12}, {5, 9, 11, 6, 7, 8, 20, 30, 40, 50, 60, 70})}};
  EXPECT_LT(largest_difference(results_of(file, in).at("last_hidden_state"), 0,
                               results_of(folder, in).at("last_hidden_state"), 0, 12),
            kLogitTolerance);
}

}  // namespace
}  // namespace rlx::test
