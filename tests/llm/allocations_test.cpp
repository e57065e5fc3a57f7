// Steady state: once a model has written its first tokens, the next ones allocate nothing.
#include <gtest/gtest.h>

#include "rlx/llm/language_model.h"
#include "tests/models/tiny.h"
#include "tests/support/allocation_counter.h"

namespace rlx::llm {
namespace {

using test::allocations;

models::Model tiny_model(const test::Scratch& scratch) {
  test::TinyLlama tiny;
  tiny.config["max_position_embeddings"] = "512";
  return models::open_model(tiny.write(scratch));
}

// Text that reaches into a second page.
TEST(Allocations, are_none_for_a_token) {
  const test::Scratch scratch;
  const models::Model model = tiny_model(scratch);
  for (const DType type : {DType::f32, DType::f16}) {
    Decoder d(model, {.capacity = 64, .batch = 2, .cache_type = type, .page = 16, .compile = {.threads = 2}});
    const std::vector<TokenId> prompt{1, 2, 3, 4, 5, 6}, next{7, 8};
    d.feed(prompt);
    for (int i = 0; i < 2; ++i) d.feed(next);
    const int64_t before = allocations.load();
    for (int i = 0; i < 40; ++i) d.feed(next);
    EXPECT_EQ(allocations.load() - before, 0);
  }
}

TEST(Allocations, are_none_for_a_choice) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = float(i * 37 % 100) * 0.05f;
  const Sampling ways[] = {
      {.temperature = 0},
      {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .repetition_penalty = 1.1, .seed = 3}};
  for (const Sampling& sampling : ways) {
    Sampler s(100, {.threads = 2});
    std::vector<TokenId> text{1, 2, 3};
    text.reserve(64);
    const auto choose = [&] {
      text.push_back(s.choose(logits, {.sampling = &sampling, .prompt = text, .generated = text}).token);
    };
    for (int i = 0; i < 2; ++i) choose();
    const int64_t before = allocations.load();
    for (int i = 0; i < 20; ++i) choose();
    EXPECT_EQ(allocations.load() - before, 0);
  }
}

// A call allocates for itself, not for its tokens.
TEST(Allocations, of_an_answer_do_not_grow_with_it) {
  const test::Scratch scratch;
  LanguageModel model(std::make_shared<const models::Model>(tiny_model(scratch)),
                      {.context = 256, .compile = {.threads = 2}});
  const std::vector<TokenId> prompt{1, 2, 3, 4};
  const auto allocations_of = [&](int64_t tokens) {
    const GenerateOptions options{.max_tokens = tokens, .sampling = {.temperature = 0}, .ignore_end = true};
    const int64_t before = allocations.load();
    EXPECT_EQ(model.generate_ids(prompt, options).tokens.size(), size_t(tokens));
    return allocations.load() - before;
  };
  allocations_of(8);  // makes the plans
  EXPECT_EQ(allocations_of(200), allocations_of(20));
}

}  // namespace
}  // namespace rlx::llm
