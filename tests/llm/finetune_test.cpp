// Fine-tuning: what is learnt, resuming, and the adapter that comes out.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "rlx/llm/finetune.h"
#include "rlx/llm/quantize_model.h"
#include "tests/models/gguf_form.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::llm {
namespace {

using test::Scratch;

// Texts with a rule: each token follows from the one before.
TrainingTexts counting(int64_t vocab, size_t texts, size_t length) {
  TrainingTexts out;
  for (size_t t = 0; t < texts; ++t) {
    TrainingText text;
    int64_t token = int64_t(3 + 7 * t) % vocab;
    for (size_t i = 0; i < length; ++i) {
      text.ids.push_back(text::TokenId(token));
      text.learnt.push_back(i > 0);
      token = (token * 3 + 5) % 40 + 2;
    }
    out.texts.push_back(std::move(text));
  }
  return out;
}

FinetuneOptions quick() {
  FinetuneOptions o;
  o.compile.device = test::test_device();
  o.adapter.rank = 4;
  o.batch = 4;
  o.steps = 30;
  o.held_back = 0.25;
  o.schedule = {.name = "constant", .rate = 5e-3};
  return o;
}

void expect_equal(const Adapter& a, const Adapter& b) {
  ASSERT_EQ(a.parts().size(), b.parts().size());
  for (const auto& [name, part] : a.parts()) {
    const Adapter::Part& other = b.parts().at(name);
    for (const auto& [x, y] : {std::pair{&part.a, &other.a}, std::pair{&part.b, &other.b}})
      ASSERT_TRUE(std::equal(x->bytes().begin(), x->bytes().end(), y->bytes().begin(), y->bytes().end()))
          << name;
  }
}

// A plain folder, and packed weights: the checkpoint in blocks of 8 bits has rows of 32 and more.
const char* const kModels[] = {"checkpoints/llama", "gguf/llama-Q4_0.gguf", "gguf/llama-Q4_K_M.gguf",
                               "gguf/qwen2-Q8_0.gguf"};

class Finetunes : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Finetunes, testing::ValuesIn(kModels), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST_P(Finetunes, TheLossOfWhatIsHeldBackFalls) {
  RLX_REQUIRE_DATA(GetParam());
  const models::Model model = models::open_model(test::data_path(GetParam()));
  Finetuning run(model, counting(model.config().vocab, 16, 20), quick());
  EXPECT_EQ(run.held_back_texts(), 4);
  const double before = run.held_back_loss();
  while (run.steps() < run.total_steps()) {
    const FinetuneStep s = run.step();
    ASSERT_TRUE(std::isfinite(s.loss)) << "step " << s.step;
    EXPECT_EQ(s.tokens, 80);
  }
  EXPECT_LT(run.held_back_loss(), 0.9 * before) << "before " << before;
}

// Recomputing activations changes how, not what, is computed: the same adapter but for the order of sums.
TEST_P(Finetunes, ABudgetOfActivationsGivesTheSameSteps) {
  RLX_REQUIRE_DATA(GetParam());
  const models::Model model = models::open_model(test::data_path(GetParam()));
  FinetuneOptions o = quick();
  o.held_back = 0;
  Finetuning plenty(model, counting(model.config().vocab, 8, 20), o);
  o.activation_budget = 20000;
  Finetuning little(model, counting(model.config().vocab, 8, 20), o);
  EXPECT_LT(little.trainer().saved_bytes(), plenty.trainer().saved_bytes());
  for (int i = 0; i < 4; ++i) {
    const double a = plenty.step().loss, b = little.step().loss;
    EXPECT_NEAR(a, b, 1e-3 * a) << "step " << i;
  }
}

TEST_P(Finetunes, GoesOnWithTheSameBits) {
  RLX_REQUIRE_DATA(GetParam());
  const models::Model model = models::open_model(test::data_path(GetParam()));
  const auto texts = [&] { return counting(model.config().vocab, 9, 12); };
  FinetuneOptions o = quick();
  o.steps = 6;
  const Scratch scratch;
  Finetuning whole(model, texts(), o);
  while (whole.steps() < 6) whole.step();
  {
    Finetuning first(model, texts(), o);
    while (first.steps() < 3) first.step();
    first.save_checkpoint(scratch.path("c.safetensors"));
  }
  Finetuning second(model, texts(), o);
  second.load_checkpoint(scratch.path("c.safetensors"));
  EXPECT_EQ(second.steps(), 3);
  while (second.steps() < 6) second.step();
  expect_equal(whole.adapter(), second.adapter());
}

// The adapter that is written, opened again beside the weights: the logits of the graph that was trained.
TEST_P(Finetunes, TheAdapterServesWhatWasTrained) {
  RLX_REQUIRE_DATA(GetParam());
  const models::Model model = models::open_model(test::data_path(GetParam()));
  Finetuning run(model, counting(model.config().vocab, 8, 12), quick());
  for (int i = 0; i < 5; ++i) run.step();
  const Scratch scratch;
  run.adapter().write(scratch.path("adapter"), "base");
  const Adapter opened = Adapter::open(scratch.path("adapter"));
  opened.check_fits(model);
  expect_equal(run.adapter(), opened);
  const auto logits = [&](const Adapter& a) {
    models::ModelGraph g = model.graph({.linear = a.hook()});
    for (const auto& [name, value] : a.weights()) g.weights.insert_or_assign(name, value);
    return compile(g.graph, g.weights)
        .run({{"input_ids", Literal::of<int32_t>({1, 4}, {5, 9, 2, 7})}})
        .at("logits");
  };
  const Literal served = logits(opened), trained = logits(run.adapter());
  ASSERT_TRUE(std::equal(served.bytes().begin(), served.bytes().end(), trained.bytes().begin()));
  // It does change the model.
  const models::ModelGraph g = model.graph();
  const Literal bare = compile(g.graph, g.weights)
                           .run({{"input_ids", Literal::of<int32_t>({1, 4}, {5, 9, 2, 7})}})
                           .at("logits");
  double moved = 0;
  for (int64_t i = 0; i < bare.elements(); ++i)
    moved = std::max(moved, std::abs(bare.real_at(i) - served.real_at(i)));
  EXPECT_GT(moved, 1e-3);
}

TEST(Finetuning, RefusesACheckpointOfAnotherRun) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  const models::Model model = models::open_model(test::data_path("checkpoints/llama"));
  const Scratch scratch;
  FinetuneOptions o = quick();
  Finetuning(model, counting(model.config().vocab, 8, 12), o).save_checkpoint(scratch.path("c.safetensors"));
  o.schedule.rate = 1e-4;
  Finetuning other(model, counting(model.config().vocab, 8, 12), o);
  const std::string message = test::message_of([&] { other.load_checkpoint(scratch.path("c.safetensors")); });
  EXPECT_NE(message.find("rate is 1e-04 and was 0.005"), std::string::npos) << message;
}

TEST(NewAdapters, TargetsAreNames) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  const models::Model model = models::open_model(test::data_path("checkpoints/llama"));
  const Adapter two = Adapter::create(model, {.targets = {"q_proj", "v_proj"}});
  EXPECT_EQ(int64_t(two.parts().size()), 2 * model.config().layers);
  EXPECT_EQ(int64_t(Adapter::create(model, {}).parts().size()), 7 * model.config().layers);
  const std::string message = test::message_of([&] { Adapter::create(model, {.targets = {"query"}}); });
  EXPECT_NE(message.find("has no products 'query'; it has"), std::string::npos) << message;
}

// An adapter of a folder beside the same weights as a GGUF file, whose rows of q and k are in another order.
TEST(PeftAdapters, GoWithGgufModels) {
  RLX_REQUIRE_DATA("lora/llama");
  const Scratch scratch;
  const models::Model folder = models::open_model(test::data_path("checkpoints/llama"));
  test::write_gguf_form(folder, scratch.path("model.gguf"));
  const models::Model model = models::open_model(scratch.path("model.gguf"));
  const NamedLiterals want = test::expected_values(test::data_path("lora/llama/expected.safetensors"));
  const Adapter adapter = Adapter::open(test::data_path("lora/llama"));
  adapter.check_fits(model);
  models::ModelGraph g = model.graph({.linear = adapter.hook()});
  for (const auto& [name, value] : adapter.weights()) g.weights.insert_or_assign(name, value);
  const Literal got = compile(g.graph, g.weights).run({{"input_ids", want.at("input_ids")}}).at("logits");
  EXPECT_LT(test::largest_difference(got, 0, want.at("logits"), 0, want.at("input_ids").elements()), 2e-4);
}

// Where GGUF keeps a weight otherwise, the adapter is refused instead of being wrong.
TEST(PeftAdapters, AreRefusedWhereGgufKeepsOtherWeights) {
  RLX_REQUIRE_DATA("checkpoints/gpt_neox");
  const Scratch scratch;
  const models::Model folder = models::open_model(test::data_path("checkpoints/gpt_neox"));
  Adapter::create(folder, {.rank = 2, .targets = {"query_key_value"}}).write(scratch.path("adapter"), "base");
  test::write_gguf_form(folder, scratch.path("model.gguf"));
  const Adapter adapter = Adapter::open(scratch.path("adapter"));
  adapter.check_fits(folder);
  const std::string message =
      test::message_of([&] { adapter.check_fits(models::open_model(scratch.path("model.gguf"))); });
  EXPECT_NE(message.find("use the adapter with the folder of the model"), std::string::npos) << message;
}

// ---- texts ----

std::string written(const Scratch& scratch, const std::string& name, const std::string& text) {
  std::ofstream(scratch.path(name)) << text;
  return scratch.path(name);
}

TEST(TrainingTexts, LinesOfEachKind) {
  RLX_REQUIRE_DATA("gguf/qwen2-Q8_0.gguf");
  const models::Model model = models::open_model(test::data_path("gguf/qwen2-Q8_0.gguf"));
  const Scratch scratch;
  const std::string path =
      written(scratch, "t.jsonl",
              "{\"text\": \"the quick brown fox\"}\n\n{\"prompt\": \"the \", \"completion\": \"fox\"}\n");
  const TrainingTexts t = read_training_texts(path, model, 64);
  ASSERT_EQ(t.texts.size(), 2u);
  // All but the first token, which nothing predicts; of the second only the completion.
  EXPECT_EQ(std::count(t.texts[0].learnt.begin(), t.texts[0].learnt.end(), 1),
            int64_t(t.texts[0].ids.size()) - 1);
  const TrainingText& c = t.texts[1];
  const size_t prompt = model.file().tokenizer().encode("the ").ids.size();
  for (size_t i = 0; i < c.ids.size(); ++i) EXPECT_EQ(c.learnt[i], i >= prompt) << i;
  const TrainingTexts cut = read_training_texts(path, model, 3);
  EXPECT_GT(cut.cut, 0);
  for (const TrainingText& text : cut.texts) EXPECT_LE(text.ids.size(), 3u);
  const std::string message = test::message_of([&] {
    read_training_texts(written(scratch, "bad.jsonl", "{\"text\": \"a\"}\n{\"word\": 1}\n"), model, 64);
  });
  EXPECT_NE(message.find("line 2: 'messages', 'prompt' and 'completion', or 'text' expected"),
            std::string::npos)
      << message;
}

TEST(TrainingTexts, AnyOtherFileIsCutInPieces) {
  RLX_REQUIRE_DATA("gguf/qwen2-Q8_0.gguf");
  const models::Model model = models::open_model(test::data_path("gguf/qwen2-Q8_0.gguf"));
  const Scratch scratch;
  std::string words;
  for (int i = 0; i < 200; ++i) words += "the quick brown fox ";
  const TrainingTexts t = read_training_texts(written(scratch, "t.txt", words), model, 32);
  ASSERT_GT(t.texts.size(), 3u);
  for (size_t i = 0; i + 1 < t.texts.size(); ++i) EXPECT_EQ(t.texts[i].ids.size(), 32u);
}

}  // namespace
}  // namespace rlx::llm
