// The stored training curves, step by step and at their end, compiled for the CPU.
#include <cmath>

#include "tests/train/cases.h"

namespace rlx {
namespace {

using test::Case;

const char* const kCases[] = {"bf16_mixed_adam", "conv_adam",        "llama_block_accum", "logreg_lbfgs",
                              "lora_adamw",      "mlp_sgd_momentum", "mlp_sgd_nesterov",  "rnn_rmsprop",
                              "tiny_gpt_adamw",  "vae_adagrad"};

class Curves : public testing::TestWithParam<const char*> {};

void expect_curve(const Case& c, const test::Run& run, const std::string& type, const std::string& final) {
  const std::vector<double> want = c.losses();
  ASSERT_EQ(run.losses.size(), want.size());
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::fabs(run.losses[i] - want[i]) / std::max(1.0, std::fabs(want[i]));
    worst = std::max(worst, difference);
    ASSERT_LE(difference, c.tolerance("loss_" + type)) << "loss of step " << i;
  }
  double furthest = 0;
  for (const auto& [name, value] : c.final_weights(final)) {
    const double difference = test::relative_difference(run.weights.at(name), value);
    furthest = std::max(furthest, difference);
    EXPECT_LE(difference, c.tolerance("params_" + type)) << name;
  }
  testing::Test::RecordProperty("loss_" + type, cat(worst));
  testing::Test::RecordProperty("params_" + type, cat(furthest));
}

std::string final_of(const std::string& name) { return name == "bf16_mixed_adam" ? "final_f64" : "final"; }

TEST_P(Curves, in_f32_are_the_stored_ones) {
  RLX_REQUIRE_DATA("training");
  const Case c(GetParam(), DType::f32);
  expect_curve(c, test::run_case(c, c.options()), "f32", final_of(GetParam()));
}

TEST_P(Curves, in_f64_are_the_stored_ones) {
  RLX_REQUIRE_DATA("training");
  const Case c(GetParam(), DType::f64);
  expect_curve(c, test::run_case(c, c.options()), "f64", final_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Stored, Curves, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param); });

TEST(MixedPrecision, in_bf16_is_the_stored_curve) {
  RLX_REQUIRE_DATA("training");
  const Case c("bf16_mixed_adam", DType::f32);
  train::TrainOptions options = c.options();
  options.mixed = DType::bf16;
  const test::Run run = test::run_case(c, options);
  const std::vector<double> want = c.losses("bf16_mixed");
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(run.losses[i], want[i], c.tolerance("loss_bf16_mixed")) << "step " << i;
  for (const auto& [name, value] : c.final_weights()) {
    double apart = 0, size = 0;
    for (int64_t i = 0; i < value.elements(); ++i) {
      apart += std::pow(run.weights.at(name).real_at(i) - value.real_at(i), 2);
      size += std::pow(value.real_at(i), 2);
    }
    EXPECT_LE(std::sqrt(apart / size), c.tolerance("params_bf16_mixed_relative_l2")) << name;
  }
}

}  // namespace
}  // namespace rlx
