// The sampler's distribution against stored ones, and its draws against its distribution.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "rlx/base/json.h"
#include "rlx/llm/sampler.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

std::vector<float> floats(JsonView list) {
  std::vector<float> out;
  for (const JsonView& x : list.items()) out.push_back(float(x.real()));
  return out;
}

Sampling sampling_of(JsonView params) {
  Sampling s;
  for (const auto [key, v] : params.members()) {
    if (key == "temperature")
      s.temperature = v.real();
    else if (key == "top_k")
      s.top_k = v.integer();
    else if (key == "top_p")
      s.top_p = v.real();
    else if (key == "min_p")
      s.min_p = v.real();
    else if (key == "repetition_penalty")
      s.repetition_penalty = v.real();
    else
      ADD_FAILURE() << "a parameter this test does not know: " << key;
  }
  return s;
}

class Stored : public testing::TestWithParam<const char*> {};

TEST_P(Stored, EveryDistribution) {
  const std::string file = std::string("checkpoints/") + GetParam() + "/processors.json";
  RLX_REQUIRE_DATA(file);
  const Json data = Json::read(test::data_path(file));
  const std::vector<float> logits = floats(data.at("logits"));
  std::vector<TokenId> prompt;
  for (const JsonView& id : data.at("prompt").items()) prompt.push_back(TokenId(id.integer()));
  Sampler sampler(int64_t(logits.size()));
  int cases = 0;
  for (const JsonView& c : data.at("cases").items()) {
    const Sampling s = sampling_of(c.at("params"));
    SCOPED_TRACE(c.at("params").text());
    const Sampler::Choice choice = sampler.choose(logits, {.sampling = &s, .prompt = prompt});
    std::map<TokenId, float> expected;
    const std::vector<float> probabilities = floats(c.at("probs"));
    for (size_t i = 0; i < probabilities.size(); ++i)
      expected[TokenId(c.at("ids").at(i).integer())] = probabilities[i];
    EXPECT_TRUE(expected.contains(choice.token)) << choice.token;
    ++cases;
    if (s.greedy()) continue;
    const auto kept = sampler.distribution();
    EXPECT_EQ(kept.size(), expected.size());
    for (const auto& [id, p] : kept) {
      ASSERT_TRUE(expected.contains(id)) << id;
      EXPECT_NEAR(p, expected[id], 2e-5) << id;
    }
  }
  EXPECT_EQ(cases, 25);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Stored, testing::Values("llama", "gemma2"));

std::vector<float> random_logits(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// Candidates below 2^-24 of all are not counted in a sum of f32; only a filter that is asked for takes them out.
TEST(Sampler, FiltersThatAreOffKeepTheUnlikely) {
  std::vector<float> logits(40);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = -float(i);
  Sampler sampler(40);
  const auto kept = [&](const Sampling& s) {
    sampler.choose(logits, {.sampling = &s});
    return sampler.distribution().size();
  };
  EXPECT_EQ(kept({.top_k = 30}), 30u);
  EXPECT_EQ(kept({.top_k = 40, .min_p = 1e-15}), 35u);  // e^-34 is above 1e-15, e^-35 below
  EXPECT_EQ(kept({.top_k = 30, .top_p = 0.9}), 3u);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<float> logits = random_logits(40, 3);
  Sampler sampler(40);
  for (const Sampling& base : {Sampling{.temperature = 0.8}, Sampling{.temperature = 1.3, .top_k = 12},
                               Sampling{.top_p = 0.9}, Sampling{.min_p = 0.05}}) {
    Sampling s = base;
    std::vector<int> counts(40, 0);
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      s.seed = uint64_t(i);
      ++counts[size_t(sampler.choose(logits, {.sampling = &s}).token)];
    }
    std::vector<float> p(40, 0);
    for (const auto& [id, value] : sampler.distribution()) p[size_t(id)] = value;
    for (size_t id = 0; id < 40; ++id) {
      const double expected = p[id] * kDraws;
      EXPECT_NEAR(counts[id], expected, 5 * std::sqrt(expected) + (p[id] > 0 ? 1 : 0)) << id;
    }
  }
}

TEST(Sampler, SameSeedSameDrawOtherStepOtherDraw) {
  const std::vector<float> logits(1000, 0.f);
  const Sampling s{.seed = 42};
  Sampler a(1000), b(1000);
  std::vector<TokenId> text, again;
  for (int i = 0; i < 20; ++i) text.push_back(a.choose(logits, {.sampling = &s, .generated = text}).token);
  for (int i = 0; i < 20; ++i) again.push_back(b.choose(logits, {.sampling = &s, .generated = again}).token);
  EXPECT_EQ(text, again);
  EXPECT_GT(std::set<TokenId>(text.begin(), text.end()).size(), 15u);
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  std::vector<float> logits = random_logits(500, 9);
  logits[77] = logits[300] = 50;
  const Sampling s{.temperature = 0};
  Sampler sampler(500);
  const Sampler::Choice c = sampler.choose(logits, {.sampling = &s});
  EXPECT_EQ(c.token, 77);
  EXPECT_NEAR(c.log_probability, -std::log(2.0), 1e-5);
}

TEST(Sampler, PenaltiesBiasAndMask) {
  std::vector<float> logits(8, 0.f);
  logits[1] = 2, logits[2] = 1.9f, logits[3] = -1;
  Sampler sampler(8);
  const std::vector<TokenId> generated{1, 1, 2};
  const Sampling s{
      .temperature = 1, .frequency_penalty = 0.5, .presence_penalty = 0.25, .logit_bias = {{3, 4.0}}};
  sampler.choose(logits, {.sampling = &s, .generated = generated});
  // 1: 2 - 2 * 0.5 - 0.25; 2: 1.9 - 0.5 - 0.25; 3: -1 + 4
  const std::vector<double> expected{0, 0.75, 1.15, 3, 0, 0, 0, 0};
  double sum = 0;
  for (const double x : expected) sum += std::exp(x);
  for (const auto& [id, p] : sampler.distribution())
    EXPECT_NEAR(p, std::exp(expected[size_t(id)]) / sum, 1e-6) << id;
  const Sampling greedy{.temperature = 0};
  const uint32_t mask = 1u << 5 | 1u << 3;
  EXPECT_EQ(sampler.choose(logits, {.sampling = &greedy, .mask = {&mask, 1}}).token, 5);
}

TEST(Sampler, RefusesSettingsOutOfRange) {
  const auto message = [](const Sampling& s) { return test::message_of([&] { check_sampling(s, 10); }); };
  EXPECT_EQ(message({.temperature = -1}), "sampling: temperature is -1.0; 0 or above expected");
  EXPECT_EQ(message({.top_p = 0}), "sampling: top_p is 0.0; above 0 and at most 1 expected");
  EXPECT_EQ(message({.logit_bias = {{10, 1.0}}}),
            "sampling: a logit bias of 1.0 for token 10; tokens are 0 to 9");
  EXPECT_EQ(message({}), "no error");
}

}  // namespace
}  // namespace rlx::llm
