#include <gtest/gtest.h>

#include "rlx/ops/norm/axis_norm_backward.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/norm/residual_norm.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::refusal;

TEST(NormErrors, axes_and_parameters) {
  EXPECT_EQ(refusal<LayerNorm>({2, 1e-5}, {"f32[2,3]"}),
            "layer_norm: axis 2 is out of range for x: f32[2,3]");
  EXPECT_EQ(refusal<LayerNorm>({0, 1e-5}, {"f32[2,3]", "f32[3]"}),
            "layer_norm: gamma: f32[3] must have the size of axis 0 of f32[2,3]");
  EXPECT_EQ(refusal<RmsNorm>({-1, -1}, {"f32[2,3]"}),
            "rms_norm: eps -1.0 must be a number that is not negative");
  EXPECT_EQ(refusal<RmsNorm>({-1, 0}, {"f32[2,3]", "f32[3]", "f16[3]"}),
            "rms_norm: dtypes differ, x: f32[2,3] and beta: f16[3]; cast beta to f32");
  EXPECT_EQ(refusal<LayerNorm2d>({}, {"f32[2,3]"}),
            "layer_norm2d: x: f32[2,3] has rank 2; it must have rank 4");
  EXPECT_EQ(test::message_of([] {
              Graph g;
              const Expr x{&g, g.input("x", parse_shape("f32[3]"))};
              layer_norm(x, {}, x, -1, 0);
            }),
            "layer_norm: beta is given without gamma; give ones for gamma");
}

TEST(NormErrors, groups) {
  EXPECT_EQ(refusal<GroupNorm>({4}, {"f32[2,6,3]"}),
            "group_norm: x: f32[2,6,3] has 6 channels, not divisible by num_groups 4");
  EXPECT_EQ(refusal<GroupNorm>({0}, {"f32[2,6,3]"}), "group_norm: num_groups 0 must be 1 or more");
  EXPECT_EQ(refusal<GroupNorm>({1}, {"i32[2,6]"}),
            "group_norm: x: i32[2,6] has dtype i32; it must be f16, bf16, f32 or f64");
}

TEST(NormErrors, residual_norms_count_their_operands) {
  const std::vector<std::string> four{"f32[2,3]", "f32[2,3]", "f32[3]", "f32[3]"};
  EXPECT_EQ(
      refusal<FusedResidualLn>({.has_bias = true}, four),
      "fused_residual_ln: has 4 operands; with has_bias = true it takes 5: x, residual, bias, gamma, beta");
  EXPECT_EQ(refusal<FusedResidualRmsNorm>({}, {"f32[2,3]", "f32[4,3]", "f32[3]", "f32[3]"}),
            "fused_residual_rms_norm: sizes of x and residual differ, 2 and 4");
}

TEST(NormErrors, gradients) {
  EXPECT_EQ(refusal<LayerNormBackwardInput>({}, {"f32[2,3]", "f32[3]", "f32[2,4]"}),
            "layer_norm_backward_input: sizes of x and dy differ, 3 and 4");
  EXPECT_EQ(refusal<LayerNormBackwardGamma>({-1, 0, {4}}, {"f32[2,3]", "f32[2,3]"}),
            "layer_norm_backward_gamma: gamma_shape [4] must be [3], the size of axis 1 of x: f32[2,3]");
  const std::vector<std::string> bad{"f32[2,3]", "f32[3]", "f32[2]", "f32[2,3]"};
  EXPECT_EQ(refusal<RmsNormBackwardInput>({}, bad),
            "rms_norm_backward_input: beta: f32[2] must have the size of axis 1 of f32[2,3]");
  EXPECT_EQ(refusal<RmsNormBackwardGamma>({}, bad),
            "rms_norm_backward_gamma: beta: f32[2] must have the size of axis 1 of f32[2,3]");
  EXPECT_EQ(refusal<RmsNormBackwardBeta>({}, bad),
            "rms_norm_backward_beta: beta: f32[2] must have the size of axis 1 of f32[2,3]");
  EXPECT_EQ(refusal<GroupNormBackwardInput>({2}, {"f32[2,4]", "f32[4]", "f32[4]", "f32[2]"}),
            "group_norm_backward_input: dy: f32[2] has rank 1; it must have rank 2");
  EXPECT_EQ(refusal<GroupNormBackwardGamma>({{3}, 2}, {"f32[2,4]", "f32[2,4]"}),
            "group_norm_backward_gamma: shape [3] must be [4], the channels of x: f32[2,4]");
  EXPECT_EQ(refusal<GroupNormBackwardBeta>({{}, 3}, {"f32[2,4]", "f32[2,4]"}),
            "group_norm_backward_beta: x: f32[2,4] has 4 channels, not divisible by num_groups 3");
}

}  // namespace
}  // namespace rlx::ops
