// Texts that a model with random weights writes under a JSON schema: each parses and is valid.
#include <gtest/gtest.h>

#include <cstdlib>

#include "rlx/llm/batcher.h"
#include "tests/llm/json_validator.h"
#include "tests/support/data.h"

namespace rlx::llm {
namespace {

// RLX_JSON_TEXTS draws another number of them.
TEST(JsonGeneration, SampledTextsAreValid) {
  constexpr const char* kModel = "gguf/qwen2-F16.gguf";
  RLX_REQUIRE_DATA(kModel);
  const char* asked = std::getenv("RLX_JSON_TEXTS");
  const size_t count = asked != nullptr ? std::stoul(asked) : 1000;
  LanguageModel model = LanguageModel::open(test::data_path(kModel));
  std::vector<std::shared_ptr<const Grammar>> grammars;
  for (const char* schema : test::kSchemas)
    grammars.push_back(
        std::make_shared<const Grammar>(Grammar::from_json_schema(Json::parse(schema, "schema"))));
  Batcher batcher(model, {.rows = 16, .context = 128, .page = 16});
  std::vector<Batcher::RequestId> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(batcher.submit({1, TokenId(2 + i % 300)}, {.max_tokens = int64_t(48 + i % 48),
                                                             .sampling = {.temperature = 1.5, .seed = i},
                                                             .grammar = grammars[i % grammars.size()]}));
  while (batcher.step()) {
  }
  for (size_t i = 0; i < count; ++i) {
    const char* schema = test::kSchemas[i % grammars.size()];
    const Generation g = *batcher.take(ids[i]);
    const Json document = Json::parse(schema, "schema");
    Json value;
    ASSERT_NO_THROW(value = Json::parse(g.text, "text")) << schema << "\n" << g.text;
    EXPECT_TRUE(test::Validator(document).valid(document, value)) << schema << "\n" << g.text;
  }
}

}  // namespace
}  // namespace rlx::llm
