// The memory a model will take, told before it is loaded.
#include <gtest/gtest.h>

#include "rlx/llm/language_model.h"
#include "rlx/llm/model_memory.h"
#include "rlx/runtime/report.h"
#include "tests/support/data.h"

namespace rlx::llm {
namespace {

TEST(ModelMemory, CachesGrowWithTokensAndTexts) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  const models::Model model = models::open_model(test::data_path("checkpoints/llama"));
  const models::Config& c = model.config();
  const ModelMemory one = memory_of(model, {.context = 64}),
                    two = memory_of(model, {.context = 128, .batch = 2});
  const double per_token = double(2 * c.layers * c.kv_heads * c.head_dim * 4);
  EXPECT_EQ(one.cache_per_token, per_token);
  // Whole pages, and one that is nobody's.
  EXPECT_GE(one.caches, int64_t(64 * per_token));
  EXPECT_GT(two.caches, one.caches);
  EXPECT_EQ(memory_of(model, {.context = 64, .cache_type = DType::f16}).caches, one.caches / 2);
  EXPECT_GT(one.prompt_workspace, one.token_workspace);
  EXPECT_GT(two.prompt_workspace, one.prompt_workspace);
}

// What was told is what a decoder then has.
TEST(ModelMemory, IsThatOfTheDecoder) {
  RLX_REQUIRE_DATA("gguf/llama-Q4_K_M.gguf");
  const models::Model model = models::open_model(test::data_path("gguf/llama-Q4_K_M.gguf"));
  const ModelMemory told = memory_of(model, {.context = 64, .chunk = 64});
  EXPECT_GT(told.packed, 0);
  int64_t stored = 0;
  for (const io::TensorView& t : model.file().tensors) stored += t.stored_bytes();
  EXPECT_EQ(told.file, stored);
  Decoder decoder(model, {.capacity = 64, .chunk = 64});
  std::vector<TokenId> ids(64, 3);
  decoder.feed(ids);
  EXPECT_EQ(decoder.compiled().packed_weight_bytes(), told.packed);
  const MemoryUse now = decoder.compiled().report().memory;
  EXPECT_EQ(now.states, told.caches);
  EXPECT_EQ(now.arena + now.inputs + now.outputs, told.prompt_workspace);
}

TEST(ModelMemory, EncodersHaveNoCaches) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const models::Model model = models::open_model(test::data_path("checkpoints/bert"));
  const ModelMemory m = memory_of(model, {.context = 32, .batch = 3});
  EXPECT_EQ(m.caches, 0);
  EXPECT_GT(m.prompt_workspace, 0);
}

}  // namespace
}  // namespace rlx::llm
