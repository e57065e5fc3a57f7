// Rotary positions as configurations spell them, compared with what transformers 5.23 computes from the same file.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/models/model.h"
#include "rlx/models/rope.h"
#include "tests/models/tiny.h"
#include "tests/support/errors.h"

namespace rlx::test {
namespace {

using Fields = std::map<std::string, std::string>;

models::Rope rope_of(const Fields& fields) {
  const Scratch scratch;
  TinyLlama tiny;
  for (const auto& [key, value] : fields) tiny.config[key] = value;
  return models::open_model(tiny.write(scratch)).config().rope;
}

models::Rope with_parameters(const std::string& parameters) {
  return rope_of({{"rope_parameters", parameters}});
}

TEST(RopeValues, AFactorThatIsNotToldIsThatOfTheLengths) {
  const models::Rope yarn =
      with_parameters(R"({"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 2})");
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_NEAR(yarn.magnitude, 0.1 * std::log(4) + 1, 1e-12);
  const std::string factors = R"("short_factor": [1, 2], "long_factor": [3, 4])";
  const models::Rope longrope =
      with_parameters(R"({"rope_type": "longrope", "original_max_position_embeddings": 2, )" + factors + "}");
  EXPECT_NEAR(longrope.magnitude, std::sqrt(1 + std::log(4) / std::log(2)), 1e-12);
}

TEST(RopeValues, AFactorOfOneIsAFactor) {
  const models::Rope r = with_parameters(
      R"({"rope_type": "longrope", "factor": 1.0, "original_max_position_embeddings": 2,
          "short_factor": [1, 2], "long_factor": [3, 4]})");
  EXPECT_EQ(r.magnitude, 1);
}

TEST(RopeValues, BetasOfZeroAreNone) {
  const models::Rope r = with_parameters(
      R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2, "beta_fast": 0, "beta_slow": 0})");
  EXPECT_EQ(r.beta_fast, 32);
  EXPECT_EQ(r.beta_slow, 1);
}

TEST(RopeValues, TheLengthBesideTheObjectCounts) {
  const std::string object = R"({"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 2})";
  EXPECT_EQ(with_parameters(object).original_positions, 2);
  EXPECT_EQ(
      rope_of({{"rope_parameters", object}, {"original_max_position_embeddings", "4"}}).original_positions,
      4);
}

TEST(RopeValues, DynamicGrowsFromTheLongestTextOn) {
  const models::Rope r =
      with_parameters(R"({"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 4})");
  EXPECT_EQ(r.original_positions, 8);
}

TEST(RopeValues, ScalingGoesBeforeParameters) {
  const models::Rope r =
      rope_of({{"rope_parameters", R"({"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0})"},
               {"rope_scaling", R"({"rope_type": "linear", "factor": 5.0})"},
               {"rope_theta", "300.0"}});
  EXPECT_EQ(r.factor, 5);
  EXPECT_EQ(r.theta, 300);
  const models::Rope empty =
      rope_of({{"rope_parameters", R"({"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0})"},
               {"rope_scaling", "{}"}});
  EXPECT_EQ(empty.factor, 2);
  EXPECT_EQ(empty.theta, 50);
}

// Three of twelve lanes: two pairs, whose frequencies are those of three lanes.
TEST(RopeValues, AnOddPartOfAHeadIsAsWideAsItsPairs) {
  const Fields fields{{"model_type", "\"phi3\""}, {"hidden_size", "24"}, {"partial_rotary_factor", "0.25"}};
  const models::Rope r = rope_of(fields);
  EXPECT_EQ(r.lanes, 4);
  const std::vector<double> f = models::rope_frequencies(r);
  ASSERT_EQ(f.size(), 2u);
  EXPECT_EQ(f[0], 1);
  EXPECT_NEAR(f[1], std::pow(10000, -2.0 / 3), 1e-15);
  const std::string whole = message_of([] { rope_of({{"hidden_size", "14"}}); });
  EXPECT_NE(whole.find("7 lanes of a head turn; a positive even number expected"), whole.npos) << whole;
}

}  // namespace
}  // namespace rlx::test
