// Many requests over one store of pages: each gets bit for bit what it gets alone, and every page comes back.
#include "rlx/llm/batcher.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

using Ids = std::vector<TokenId>;
using test::message_of;

LanguageModel open(const std::string& name) {
  return LanguageModel::open(test::data_path(name), {.compile = {.device = test::test_device()}});
}

struct Request {
  Ids prompt;
  GenerateOptions options;
  int64_t arrives = 0;  // at this step
};

// Prompts of random lengths, some of which begin alike; greedy and sampled.
std::vector<Request> random_requests(size_t count, int64_t vocab, int64_t longest, unsigned seed) {
  std::mt19937 e(seed);
  const auto from = [&](int64_t low, int64_t high) { return low + int64_t(e() % uint64_t(high - low + 1)); };
  std::vector<Ids> beginnings(3);
  for (Ids& b : beginnings)
    for (int64_t i = from(4, longest / 2); i > 0; --i) b.push_back(TokenId(from(0, vocab - 1)));
  std::vector<Request> out(count);
  int64_t now = 0;
  for (Request& r : out) {
    if (from(0, 1) == 0) r.prompt = beginnings[size_t(from(0, 2))];
    for (int64_t i = from(1, longest / 2); i > 0; --i) r.prompt.push_back(TokenId(from(0, vocab - 1)));
    r.options.max_tokens = from(1, longest / 2);
    r.options.ignore_end = true;
    if (from(0, 1) == 0)
      r.options.sampling = {.temperature = 0.9, .top_k = from(0, 20), .top_p = 0.95, .seed = uint64_t(e())};
    if (from(0, 3) == 0) r.options.sampling.repetition_penalty = 1.2;
    now += from(0, 2) == 0 ? from(0, 6) : 0;
    r.arrives = now;
  }
  return out;
}

std::vector<Generation> serve(Batcher& batcher, const std::vector<Request>& requests) {
  std::vector<Batcher::RequestId> ids;
  size_t sent = 0;
  for (int64_t step = 0; sent < requests.size() || batcher.usage().running > 0 || batcher.usage().waiting > 0;
       ++step) {
    for (; sent < requests.size() && requests[sent].arrives <= step; ++sent)
      ids.push_back(batcher.submit(requests[sent].prompt, requests[sent].options));
    batcher.step();
  }
  std::vector<Generation> out;
  for (const auto id : ids) out.push_back(batcher.take(id).value());
  return out;
}

// Tokens, and log-probabilities to the last bit.
void expect_same(const Generation& a, const Generation& b, size_t request) {
  EXPECT_EQ(a.tokens, b.tokens) << "request " << request;
  EXPECT_EQ(a.log_probabilities, b.log_probabilities) << "request " << request;
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish, b.finish);
}

void expect_all_pages_back(Batcher& batcher) {
  EXPECT_EQ(batcher.usage().free_pages + batcher.usage().prefix_pages, batcher.usage().pages);
  batcher.forget_prefixes();
  EXPECT_EQ(batcher.usage().free_pages, batcher.usage().pages);
  EXPECT_EQ(batcher.usage().free_window_pages, batcher.usage().window_pages);
}

// Every request in company, and alone: in a batcher of one row that has nothing to share.
void expect_as_alone(LanguageModel& model, const std::vector<Request>& requests, BatcherOptions options) {
  Batcher together(model, options);
  const std::vector<Generation> got = serve(together, requests);
  expect_all_pages_back(together);
  options.rows = 1;
  options.pages = 0;
  options.share_prefixes = false;
  Batcher alone(model, options);
  for (size_t i = 0; i < requests.size(); ++i) {
    Request one = requests[i];
    one.arrives = 0;
    expect_same(got[i], serve(alone, {one})[0], i);
  }
}

TEST(Batcher, TwoHundredRequestsAtRandomTimes) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  // So few pages that requests wait and prefixes are let go.
  expect_as_alone(model, random_requests(200, model.config().vocab, 40, 1),
                  {.rows = 6, .context = 96, .page = 8, .pages = 24, .prompt_tokens = 16});
}

class EveryDecoder : public testing::TestWithParam<const char*> {};

TEST_P(EveryDecoder, EachAsAlone) {
  const std::string folder = std::string("checkpoints/") + GetParam();
  RLX_REQUIRE_DATA(folder);
  LanguageModel model = open(folder);
  expect_as_alone(model, random_requests(12, model.config().vocab, 40, 2),
                  {.rows = 5, .context = 64, .page = 4, .pages = 40, .prompt_tokens = 8});
}

// The same tokens as one text at a time, whose sums are in another order.
TEST_P(EveryDecoder, GreedyTokensAreThoseOfPlainDecoding) {
  const std::string folder = std::string("checkpoints/") + GetParam();
  RLX_REQUIRE_DATA(folder);
  LanguageModel model = open(folder), other = open(folder);
  Batcher batcher(other, {.rows = 4, .context = 64, .page = 8});
  std::vector<Request> requests = random_requests(6, model.config().vocab, 30, 3);
  for (Request& r : requests) r.options.sampling = {.temperature = 0};
  const std::vector<Generation> got = serve(batcher, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Generation want = model.generate_ids(requests[i].prompt, requests[i].options);
    EXPECT_EQ(got[i].tokens, want.tokens) << "request " << i;
    ASSERT_EQ(got[i].log_probabilities.size(), want.log_probabilities.size());
    for (size_t t = 0; t < want.tokens.size(); ++t)
      EXPECT_NEAR(got[i].log_probabilities[t], want.log_probabilities[t], 2e-4) << "request " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, EveryDecoder,
                         testing::Values("llama", "llama_yarn", "mistral", "mixtral", "qwen2", "qwen2_moe",
                                         "qwen3", "qwen3_moe", "qwen3_5", "qwen3next", "gemma2", "gemma3",
                                         "granite", "olmo2", "phi3", "deepseek_v2", "deepseek_v3", "gpt2",
                                         "gpt_neox", "mamba", "mamba2", "falcon_h1"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Batcher, PackedWeights) {
  for (const char* name : {"gguf/llama-Q4_1.gguf", "gguf/llama-Q4_K_M.gguf", "gguf/qwen2-Q8_0.gguf"}) {
    RLX_REQUIRE_DATA(name);
    LanguageModel model = open(name);
    expect_as_alone(model, random_requests(20, model.config().vocab, 40, 4),
                    {.rows = 7, .context = 64, .page = 8});
  }
}

TEST(Batcher, KeysAndValuesOfEveryType) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  const int64_t numbers = model.config().kv_heads * model.config().head_dim;
  for (const std::string_view type : models::CacheType::names()) {
    if (type == "q8_0" && numbers % 32 != 0) continue;
    expect_as_alone(model, random_requests(10, model.config().vocab, 30, 5),
                    {.rows = 4, .context = 64, .page = 8, .cache_type = models::CacheType::named(type)});
  }
}

TEST(Batcher, PromptsThatBeginAlikeAreReadOnce) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  Batcher batcher(model, {.rows = 2, .context = 64, .page = 8});
  Ids prompt;
  for (int i = 0; i < 33; ++i) prompt.push_back(TokenId(i * 5 % model.config().vocab));
  const GenerateOptions few{.max_tokens = 3, .ignore_end = true};
  const Generation first = serve(batcher, {{prompt, few}})[0], second = serve(batcher, {{prompt, few}})[0];
  EXPECT_EQ(first.reused_tokens, 0);
  EXPECT_EQ(second.reused_tokens, 32);
  EXPECT_EQ(batcher.usage().shared_tokens, 32);
  expect_same(first, second, 0);
}

TEST(Batcher, RefusesWhatCanNeverRun) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  Batcher batcher(model, {.rows = 2, .context = 64, .page = 8, .pages = 4});
  EXPECT_EQ(message_of([&] { batcher.submit({}); }),
            "batcher: the prompt is empty; at least one token expected");
  EXPECT_EQ(message_of([&] { batcher.submit(Ids(65, 1)); }),
            "batcher: the prompt has 65 tokens, and the context is 64");
  EXPECT_EQ(message_of([&] { batcher.submit(Ids(20, 1), {.max_tokens = 30}); }),
            "batcher: 50 tokens need 7 pages, and there are 4; fewer tokens, or more pages");
  EXPECT_EQ(message_of([&] { batcher.submit({1, -3}); }),
            cat("batcher: token -3 is not below ", model.config().vocab));
  EXPECT_EQ(message_of([&] { batcher.submit({1}, {.lookup = 3}); }),
            "batcher: decoding with guesses is for one text at a time");
  EXPECT_EQ(message_of([&] { batcher.take(9); }),
            "batcher: there is no request 9, or its answer has been taken");
  EXPECT_EQ(message_of([&] { Batcher(model, {.page = 12}); }),
            "batcher: pages of 12 tokens; a power of two expected");
  EXPECT_FALSE(batcher.step());
}

TEST(Batcher, WaitsForPages) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  Batcher batcher(model, {.rows = 4, .context = 32, .page = 8, .pages = 4});
  const GenerateOptions most{.max_tokens = 20, .ignore_end = true};
  const auto a = batcher.submit(Ids(12, 1), most), b = batcher.submit(Ids(12, 2), most);
  batcher.step();
  EXPECT_EQ(batcher.usage().running, 1);
  EXPECT_EQ(batcher.usage().waiting, 1);
  EXPECT_FALSE(batcher.take(b));
  while (batcher.step()) {
  }
  EXPECT_EQ(batcher.take(a)->tokens.size(), 20u);
  EXPECT_EQ(batcher.take(b)->tokens.size(), 20u);
  expect_all_pages_back(batcher);
}

TEST(Batcher, EndsAtTheContextAndWhenAsked) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  Batcher batcher(model, {.rows = 4, .context = 16, .page = 8});
  const GenerateOptions many{.max_tokens = 100, .ignore_end = true};
  const auto full = batcher.submit(Ids(10, 1), many);
  const auto none = batcher.submit(Ids(10, 1), {.max_tokens = 0});
  const auto stopped =
      batcher.submit(Ids(3, 1), many, [n = 0](const GeneratedToken&) mutable { return ++n < 4; });
  const auto thrown =
      batcher.submit(Ids(3, 1), many, [](const GeneratedToken&) -> bool { throw invalid("enough"); });
  const auto cancelled = batcher.submit(Ids(3, 1), many), late = batcher.submit(Ids(3, 1), many);
  batcher.cancel(late);
  batcher.step();
  batcher.cancel(cancelled);
  while (batcher.step()) {
  }
  const Generation to_the_end = *batcher.take(full);
  EXPECT_EQ(to_the_end.finish, Finish::context_full);
  EXPECT_EQ(to_the_end.tokens.size(), 7u);  // the last one is chosen and not read
  EXPECT_EQ(batcher.take(none)->tokens.size(), 0u);
  EXPECT_EQ(batcher.take(stopped)->tokens.size(), 4u);
  EXPECT_EQ(message_of([&] { batcher.take(thrown); }), "enough");
  EXPECT_EQ(batcher.take(cancelled)->finish, Finish::cancelled);
  EXPECT_EQ(batcher.take(late)->finish, Finish::cancelled);
  EXPECT_EQ(message_of([&] { batcher.take(late); }),
            cat("batcher: there is no request ", late, ", or its answer has been taken"));
  expect_all_pages_back(batcher);
}

TEST(Batcher, TakesRequestsFromOtherThreads) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  Batcher batcher(model, {.rows = 3, .context = 64, .page = 8});
  const std::vector<Request> requests = random_requests(12, model.config().vocab, 20, 6);
  std::vector<Batcher::RequestId> ids(requests.size());
  std::vector<std::thread> senders;
  for (size_t t = 0; t < 3; ++t)
    senders.emplace_back([&, t] {
      for (size_t i = t; i < requests.size(); i += 3)
        ids[i] = batcher.submit(requests[i].prompt, requests[i].options);
    });
  for (int i = 0; i < 20; ++i) batcher.step();
  for (std::thread& s : senders) s.join();
  while (batcher.step()) {
  }
  Batcher alone(model, {.rows = 1, .context = 64, .page = 8, .share_prefixes = false});
  for (size_t i = 0; i < requests.size(); ++i) {
    Request one = requests[i];
    one.arrives = 0;
    expect_same(*batcher.take(ids[i]), serve(alone, {one})[0], i);
  }
}

}  // namespace
}  // namespace rlx::llm
