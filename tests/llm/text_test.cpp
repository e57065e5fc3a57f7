// What needs a tokenizer: text in pieces, stop texts, grammars, embeddings.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/llm/embedding.h"
#include "rlx/llm/language_model.h"
#include "rlx/llm/stop_text.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::llm {
namespace {

constexpr const char* kModel = "gguf/qwen2-Q8_0.gguf";

TEST(StopText, HoldsBackWhatMayBeOne) {
  StopText stop({"END", "stop"});
  EXPECT_EQ(stop.push("a E"), "a ");
  EXPECT_EQ(stop.push("N"), "");
  EXPECT_EQ(stop.push("x st"), "ENx ");
  EXPECT_EQ(stop.push("op tail"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.push("more"), "");
  StopText open({"abc"});
  EXPECT_EQ(open.push("xab"), "x");
  EXPECT_EQ(open.finish(), "ab");
  EXPECT_EQ(test::message_of([] { StopText({""}); }), "generate: a stop text is empty");
}

TEST(Text, PiecesAddUpAndStopTextsEnd) {
  RLX_REQUIRE_DATA(kModel);
  LanguageModel model = LanguageModel::open(test::data_path(kModel), {.context = 128});
  GenerateOptions options{.max_tokens = 40, .sampling = {.temperature = 1.5, .seed = 11}, .ignore_end = true};
  std::string pieces;
  const Generation g = model.generate("the model", options, [&](const GeneratedToken& t) {
    pieces += t.text;
    return true;
  });
  EXPECT_EQ(pieces, g.text);
  EXPECT_EQ(g.text, model.tokenizer().decode(g.tokens));
  ASSERT_GT(g.text.size(), 12u);
  const std::string stop = g.text.substr(8, 3);
  options.stop = {stop};
  const Generation stopped = model.generate("the model", options);
  EXPECT_EQ(stopped.finish, Finish::stop_text);
  EXPECT_EQ(stopped.text, g.text.substr(0, g.text.find(stop)));
}

// A merge without its second half.
TEST(Text, ATokenizerThatCannotBeReadIsToldWhenTextIsAskedFor) {
  RLX_REQUIRE_DATA("gguf/llama-Q4_K_M.gguf");
  std::string bytes = read_file(test::data_path("gguf/llama-Q4_K_M.gguf"));
  const std::string merge("\3\0\0\0\0\0\0\0t o", 11);  // a text of GGUF behind its length
  ASSERT_NE(bytes.find(merge), bytes.npos);
  bytes[bytes.find(merge) + 9] = '_';
  const test::Scratch scratch;
  const std::string path = scratch.path("model.gguf");
  write_file(path, bytes);
  LanguageModel model = LanguageModel::open(path, {.context = 16});
  EXPECT_EQ(test::message_of([&] { model.generate("the", {.max_tokens = 1}); }),
            cat("model '", path, "' has no tokenizer for texts: ", path,
                ": merge 0 't_o' is not two tokens; give it ids"));
  const std::vector<TokenId> ids = {1, 2};
  EXPECT_EQ(model.generate_ids(ids, {.max_tokens = 1}).tokens.size(), 1u);
}

TEST(Text, AnswersKeepToAGrammar) {
  RLX_REQUIRE_DATA(kModel);
  LanguageModel model = LanguageModel::open(test::data_path(kModel), {.context = 128});
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer","minimum":3,"maximum":40}},"required":["name","n"],"additionalProperties":false})",
      "schema");
  const auto grammar = std::make_shared<const Grammar>(Grammar::from_json_schema(schema));
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const GenerateOptions options{
        .max_tokens = 60, .sampling = {.temperature = 1.2, .seed = seed}, .grammar = grammar};
    const Generation g = model.generate("a", options);
    const Json value = Json::parse(g.text, "answer");
    EXPECT_TRUE(value.at("name").is_string());
    EXPECT_GE(value.at("n").integer(), 3);
    EXPECT_LE(value.at("n").integer(), 40);
  }
  const auto word = std::make_shared<const Grammar>(Grammar::from_regex("(yes|no)"));
  const std::string answer =
      model.generate("a", {.max_tokens = 10, .sampling = {.temperature = 0}, .grammar = word}).text;
  EXPECT_TRUE(answer == "yes" || answer == "no") << answer;
}

double length_of(const std::vector<float>& v) {
  double sum = 0;
  for (const float x : v) sum += double(x) * double(x);
  return std::sqrt(sum);
}

TEST(Embedding, PoolingsOfAnEncoder) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const auto model =
      std::make_shared<const models::Model>(models::open_model(test::data_path("checkpoints/bert")));
  const std::vector<std::vector<TokenId>> ids{{5, 6, 7, 8}, {9}, {5, 6, 7, 8, 10, 11}};
  Embedder mean(model), raw(model, {.normalise = false}), cls(model, {.pooling = Pooling::first}),
      last(model, {.pooling = Pooling::last});
  EXPECT_EQ(mean.pooling(), Pooling::mean);
  const auto together = mean.embed_ids(ids), plain = raw.embed_ids(ids), first = cls.embed_ids(ids),
             final = last.embed_ids(ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_NEAR(length_of(together[i]), 1, 1e-5);
    // Padding changes nothing: a text alone has the same vector.
    const auto alone = mean.embed_ids(std::span(&ids[i], 1));
    for (size_t k = 0; k < alone[0].size(); ++k) {
      EXPECT_NEAR(alone[0][k], together[i][k], 1e-5);
      EXPECT_NEAR(together[i][k], plain[i][k] / length_of(plain[i]), 1e-5);
    }
  }
  for (size_t k = 0; k < first[1].size(); ++k) {  // one token: all poolings agree
    EXPECT_NEAR(first[1][k], together[1][k], 1e-5);
    EXPECT_NEAR(final[1][k], together[1][k], 1e-5);
  }
  EXPECT_GT(std::fabs(first[0][0] - final[0][0]), 1e-6);
  Embedder shorter(model, {.dimensions = 8});
  EXPECT_EQ(shorter.embed_ids(ids)[0].size(), 8u);
  EXPECT_NEAR(length_of(shorter.embed_ids(ids)[0]), 1, 1e-5);
  EXPECT_EQ(test::message_of([] { pooling_named("max"); }),
            "embed: unknown pooling 'max'; known: mean, cls, last");
}

}  // namespace
}  // namespace rlx::llm
