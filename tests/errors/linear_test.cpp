#include <gtest/gtest.h>

#include "rlx/ops/elementwise/activation_backward.h"
#include "rlx/ops/linear/fused_linear.h"
#include "rlx/ops/linear/grouped_matmul.h"
#include "rlx/ops/linear/swiglu.h"
#include "rlx/ops/loss/cross_entropy.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::refusal;

TEST(LinearErrors, products_that_do_not_fit) {
  EXPECT_EQ(refusal<FusedMatmulBiasAct>({}, {"f32[2,3]", "f32[4,5]", "f32[5]"}),
            "fused_matmul_bias_act: inner sizes differ, f32[2,3] x w: f32[4,5]; w must have 3 rows");
  EXPECT_EQ(refusal<FusedMatmulBiasAct>({}, {"f32[2,3]", "f32[3,5]", "f32[4]"}),
            "fused_matmul_bias_act: bias: f32[4] must have the 5 columns of w: f32[3,5]");
  EXPECT_EQ(refusal<LoraMatmul>({}, {"f32[2,3]", "f32[3,5]", "f32[3,1]", "f32[1,4]"}),
            "lora_matmul: columns of w and b differ, 5 and 4");
  EXPECT_EQ(refusal<LoraMatmul>({}, {"f32[2,3]", "f32[3,5]", "f32[3,1]", "f32[2,5]"}),
            "lora_matmul: inner sizes differ, f32[2,1] x b: f32[2,5]; b must have 1 rows");
  EXPECT_EQ(refusal<FusedSwiglu>({}, {"f32[2,3]"}),
            "fused_swiglu: x: f32[2,3] has an odd last axis; it must hold two halves");
  EXPECT_EQ(refusal<FusedSwiglu>({false, DType::i32}, {"f32[2,4]"}),
            "fused_swiglu: cast_to is i32; it must be f16, bf16, f32 or f64");
}

TEST(LinearErrors, grouped_products) {
  EXPECT_EQ(refusal<GroupedMatmul>({}, {"f32[2,3]", "f32[4,5,6]", "i32[2]"}),
            "grouped_matmul: w: f32[4,5,6] has 5 rows per expert; x: f32[2,3] needs 3");
  EXPECT_EQ(refusal<GroupedMatmul>({}, {"f32[2,3]", "f32[4,3,6]", "i32[3]"}),
            "grouped_matmul: numbers of rows of x and of e differ, 2 and 3");
  EXPECT_EQ(refusal<GroupedOuter>({}, {"f32[2,3]", "f32[3,1]", "i32[2]"}),
            "grouped_outer: numbers of rows of x and y differ, 2 and 3");
}

TEST(LossErrors, labels) {
  EXPECT_EQ(refusal<SoftmaxCrossEntropyWithLogits>({}, {"f32[2,3]", "i32[3]"}),
            "softmax_cross_entropy_with_logits: numbers of rows and labels differ, 2 and 3");
  EXPECT_EQ(refusal<SoftmaxCrossEntropyWithLogits>({}, {"f32[2,3]", "bool[2]"}),
            "softmax_cross_entropy_with_logits: labels: bool[2] has dtype bool; indices are integers");
  EXPECT_EQ(refusal<SoftmaxCrossEntropyBackward>({}, {"f32[2,3]", "i32[2]", "f32[3]"}),
            "softmax_cross_entropy_backward: numbers of rows and losses differ, 2 and 3");
}

TEST(ActivationErrors, gradients) {
  EXPECT_EQ(refusal<ReluBackward>({}, {"f32[2]", "f32[3]"}),
            "relu_backward: sizes of x and dy differ, 2 and 3");
  EXPECT_EQ(refusal<ActivationBackward>({}, {"i32[2]", "i32[2]"}),
            "activation_backward: x: i32[2] has dtype i32; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(refusal<ComplexNormSqBackward>({}, {"f32[2]", "f32[2]"}),
            "complex_norm_sq_backward: z: f32[2] has dtype f32; it must be c64");
}

}  // namespace
}  // namespace rlx::ops
