#include "rlx/ops/random/random.h"

#include <gtest/gtest.h>

#include "rlx/ops/random/dropout.h"
#include "rlx/ops/random/sample.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::refusal;

TEST(RandomErrors, keys_and_counters_are_integers) {
  EXPECT_EQ(refusal<RandomBits>({{3}}, {"f32[]", "i64[]"}),
            "random_bits: key: f32[] has dtype f32; it must be an integer");
  EXPECT_EQ(refusal<Dropout>({0.5}, {"f32[3]", "i64[]", "bool[]"}),
            "dropout: counter: bool[] has dtype bool; it must be an integer");
  EXPECT_EQ(refusal<SampleTokens>({}, {"f32[3]", "i64[2]", "i64[]"}),
            "sample: key: i64[2] has rank 1; it must have rank 0");
}

TEST(RandomErrors, distributions) {
  EXPECT_EQ(refusal<RandomUniform>({parse_shape("i32[3]")}, {"i64[]", "i64[]"}),
            "random_uniform: shape i32[3] has dtype i32; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(refusal<RandomUniform>({parse_shape("f32[3]"), 1, 1}, {"i64[]", "i64[]"}),
            "random_uniform: low is 1.0 and high is 1.0; low must be below high and both finite");
  EXPECT_EQ(refusal<RandomNormal>({parse_shape("f32[3]"), 0, -1}, {"i64[]", "i64[]"}),
            "random_normal: stddev is -1.0; it must not be negative");
  EXPECT_EQ(refusal<Dropout>({1}, {"f32[3]", "i64[]", "i64[]"}),
            "dropout: rate is 1.0; it must be at least 0 and below 1");
}

TEST(RandomErrors, sampling) {
  const std::vector<std::string> types{"f32[2,3]", "i64[]", "i64[]"};
  EXPECT_EQ(refusal<SampleTokens>({-1}, types), "sample: top_k is -1; it must not be negative; 0 keeps all");
  EXPECT_EQ(refusal<SampleTokens>({0, 0}, types), "sample: top_p is 0.0; it must be above 0 and at most 1");
  EXPECT_EQ(refusal<SampleTokens>({0, 1, -1}, types),
            "sample: temperature is -1.0; it must be finite and not negative; 0 takes the largest");
  EXPECT_EQ(refusal<SampleTokens>({}, {"f32[2,0]", "i64[]", "i64[]"}),
            "sample: logits: f32[2,0] has an empty vocabulary");
}

}  // namespace
}  // namespace rlx::ops
