// Every GGUF model of the test data against llama.cpp's logits and, where they are given, those in f32.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/session.h"
#include "tests/support/data.h"

namespace rlx::test {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> out;
  const std::string root = data_path("gguf");
  if (!std::filesystem::exists(root)) return {"absent"};
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".gguf") && !name.ends_with(".lora.gguf"))
      out.push_back(name.substr(0, name.size() - 5));
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Gguf : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, Gguf, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

double relative_error(const Literal& got, const Literal& want) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    difference += std::pow(got.real_at(i) - want.real_at(i), 2);
    norm += std::pow(want.real_at(i), 2);
  }
  return std::sqrt(difference / norm);
}

// Of the reference: it rounds activations to 8 bits for quantised weights, and F16 products to half precision.
double tolerance_of(const std::string& name) {
  if (name.starts_with("llama-")) return name == "llama-F16" ? 2e-3 : 2e-2;
  if (name.ends_with("-F16")) return 5e-3;
  if (name.ends_with("-Q8_0")) return 3e-2;
  return name.starts_with("gpt2") ? 1e-3 : 1e-4;
}

class Opened {
 public:
  explicit Opened(const std::string& name)
      : path_(data_path("gguf/" + name)),
        model(models::open_model(path_ + ".gguf")),
        want(expected_values(path_ + ".expected.safetensors")) {}

  Literal logits(bool rounded) const {
    const Literal& ids = want.at("input_ids");
    const models::ModelGraph g = model.graph({.round_activations = rounded});
    return compile(g.graph, g.weights, options_of(g))
        .run({{"input_ids", ids.cast(DType::i32).reshaped({1, ids.elements()})}})
        .at("logits");
  }

 private:
  std::string path_;

 public:
  models::Model model;
  NamedLiterals want;
};

// Activations are rounded as llama.cpp does.
TEST_P(Gguf, logits_of_the_reference) {
  RLX_REQUIRE_DATA("gguf");
  const Opened file(GetParam());
  const Literal& want = file.want.at("logits");
  const Literal got = file.logits(true);
  ASSERT_EQ(got.elements(), want.elements());
  EXPECT_LT(relative_error(got, want), tolerance_of(GetParam()));
  const int64_t tokens = file.want.at("input_ids").elements();
  int64_t same = 0;
  for (int64_t i = 0; i < tokens; ++i) same += largest(got, i) == largest(want, i);
  EXPECT_GE(same, tokens > 12 ? tokens - 2 : tokens - 1);
}

TEST_P(Gguf, logits_in_f32) {
  RLX_REQUIRE_DATA("gguf");
  const Opened file(GetParam());
  if (!file.want.contains("logits_f32")) GTEST_SKIP() << "no logits in f32 beside it";
  EXPECT_LT(relative_error(file.logits(false), file.want.at("logits_f32")), 1e-4);
}

// In f32: a rounded activation at the edge of two codes may fall to either side.
TEST_P(Gguf, token_by_token) {
  RLX_REQUIRE_DATA("gguf");
  const Opened file(GetParam());
  const Literal& ids = file.want.at("input_ids");
  const Tokens text = row_of(ids.reshaped({1, ids.elements()}), 0);
  const auto n = int64_t(text.size());
  const Literal whole = file.logits(false);
  Session session(file.model, 1, n, 0, {.round_activations = false});
  for (int64_t i = 0; i < n; ++i)
    ASSERT_LT(largest_difference(session.step({{text[size_t(i)]}}), 0, whole, i, 1), agreement(whole))
        << "token " << i;
}

}  // namespace
}  // namespace rlx::test
