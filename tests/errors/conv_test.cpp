#include <gtest/gtest.h>

#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/depthwise_causal.h"
#include "rlx/ops/conv/pool.h"
#include "rlx/ops/conv/resize.h"
#include "rlx/ops/conv/windows.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::refusal;

TEST(ConvErrors, general_form) {
  EXPECT_EQ(refusal<Conv>({}, {"f32[2,3]", "f32[2,3]"}),
            "conv: x: f32[2,3] has rank 2; it must be [N, C, spatial..] with 1 to 3 spatial axes");
  EXPECT_EQ(refusal<Conv>({}, {"f32[2,3,4]", "f32[2,2,2]"}),
            "conv: channels differ, x: f32[2,3,4] has 3 and w: f32[2,2,2] with groups 1 takes 2");
  EXPECT_EQ(refusal<Conv>({.stride = {0}}, {"f32[2,3,4]", "f32[2,3,2]"}),
            "conv: stride [0] has a 0; a step must move");
  EXPECT_EQ(refusal<Conv>({.dilation = {-1}}, {"f32[2,3,4]", "f32[2,3,2]"}),
            "conv: size must be given with a negative step");
  EXPECT_EQ(refusal<Conv>({.groups = 3}, {"f32[2,3,4]", "f32[2,1,2]"}),
            "conv: w: f32[2,1,2] has 2 output channels, not divisible by groups 3");
  EXPECT_EQ(refusal<Conv>({.size = {1, 2}}, {"f32[2,3,4]", "f32[2,3,2]"}),
            "conv: size [1, 2] has 2 entries; it must have 1");
}

TEST(ConvErrors, kernels_and_steps_that_do_not_fit) {
  const std::vector<std::string> types{"f32[1,3,5,5]", "f32[2,3,3,3]"};
  EXPECT_EQ(refusal<Conv2d>({{.kernel_size = {2, 3}}}, types), "conv2d: kernel sizes differ, 2 and 3");
  EXPECT_EQ(refusal<Conv2d>({{.stride = {1, 2, 3}}}, types),
            "conv2d: stride [1, 2, 3] has 3 entries; it must have 2, one for each spatial axis");
  EXPECT_EQ(refusal<Conv2d>({{.stride = {0}}}, types), "conv2d: stride [0, 0] has an entry below 1");
  EXPECT_EQ(refusal<Conv2d>({{.dilation = {3}}}, types),
            "conv2d: a window of 7 does not fit into size 5 with padding 0 and 0");
  EXPECT_EQ(refusal<Conv2d>({{.groups = 2}}, types),
            "conv2d: the input has 3 channels; the weight with groups 2 takes 6");
  EXPECT_EQ(refusal<Conv1d>({}, types), "conv1d: x: f32[1,3,5,5] has rank 4; it must have rank 3");
  EXPECT_EQ(refusal<Conv3d>({}, types), "conv3d: x: f32[1,3,5,5] has rank 4; it must have rank 5");
  EXPECT_EQ(refusal<Conv2d>({}, {"f32[1,3,5,5]", "f16[2,3,3,3]"}),
            "conv2d: dtypes differ, x: f32[1,3,5,5] and w: f16[2,3,3,3]; cast w to f32");
}

TEST(ConvErrors, transposed) {
  EXPECT_EQ(refusal<ConvTranspose2d>({{}, {1}}, {"f32[1,3,5,5]", "f32[3,2,3,3]"}),
            "conv_transpose2d: output_padding [1, 1] must be smaller than stride [1, 1] or dilation [1, 1]");
  EXPECT_EQ(refusal<ConvTranspose1d>({}, {"f32[1,3,5]", "f32[2,3,3]"}),
            "conv_transpose1d: channels of x and w differ, 3 and 2");
  EXPECT_EQ(refusal<ConvTranspose3d>({{.padding = {2}}}, {"f32[1,1,1,1,1]", "f32[1,1,1,1,1]"}),
            "conv_transpose3d: padding [2, 2, 2] leaves nothing of x: f32[1,1,1,1,1]");
}

TEST(ConvErrors, gradients) {
  EXPECT_EQ(refusal<Conv2dBackwardInput>({{}, {1, 3, 5}}, {"f32[1,2,3,3]", "f32[2,3,3,3]"}),
            "conv2d_backward_input: x_shape [1, 3, 5] must have 4 entries, [N, C, H, W]");
  EXPECT_EQ(refusal<Conv2dBackwardInput>({{}, {1, 3, 6, 5}}, {"f32[1,2,3,3]", "f32[2,3,3,3]"}),
            "conv2d_backward_input: spatial sizes of dy and of the convolution differ, 3 and 4");
  EXPECT_EQ(refusal<Conv2dBackwardWeight>({{}, {2, 3, 3, 3}}, {"f32[2,3,5,5]", "f32[1,2,3,3]"}),
            "conv2d_backward_weight: batches of x and dy differ, 2 and 1");
}

TEST(ConvErrors, depthwise_causal) {
  EXPECT_EQ(refusal<DepthwiseConv1dCausal>({}, {"f32[1,5,3]", "f32[3,1,1,4]", "f32[1,2,3]"}),
            "depthwise_conv1d_causal: kernel size and length of left_pad + 1 differ, 4 and 3");
}

TEST(PoolErrors, windows_that_do_not_fit) {
  EXPECT_EQ(refusal<Pool>({.kernel_size = {}}, {"f32[4]"}),
            "pool: kernel_size [] has 0 entries; it must have 1 to 3, one for each axis");
  EXPECT_EQ(refusal<Pool>({.kernel_size = {2}, .padding = {2}}, {"f32[4]"}),
            "pool: padding [2] must be smaller than kernel_size [2], or windows lie outside x");
  EXPECT_EQ(refusal<Pool>({.kernel_size = {5}}, {"f32[4]"}),
            "pool: a window of 5 does not fit into size 4 with padding 0 and 0");
  EXPECT_EQ(refusal<Pool>({.kernel_size = {2}}, {"c64[4]"}),
            "pool: x: c64[4] is complex and has no order; pool its real part or modulus");
  EXPECT_EQ(refusal<Pool>({.kind = ReduceOp::mean, .kernel_size = {2}}, {"i32[4]"}),
            "pool: x: i32[4] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(refusal<MaxPool2dBackward>({.kernel_size = {2}}, {"f32[4,4]", "f32[2,3]"}),
            "maxpool2d_backward: sizes of the pooled x and of dy differ, 2 and 3");
  EXPECT_EQ(refusal<Windows>({}, {"f32[4]"}),
            "windows: kernel_size is empty; it must have an entry for each axis to slide along");
  EXPECT_EQ(refusal<WindowsSum>({.size = {5}}, {"f32[3,2]"}),
            "windows_sum: numbers of windows differ, 3 and 4");
}

TEST(ResizeErrors, contradicting_wishes) {
  EXPECT_EQ(refusal<Resize>({.size = {4}, .scale = 2}, {"f32[1,1,2]"}),
            "resize: size [4] and scale 2 are both given; one of them says");
  EXPECT_EQ(refusal<Resize>({}, {"f32[1,1,2]"}),
            "resize: size is empty; it must have an entry for each axis to resize");
  EXPECT_EQ(refusal<Resize>({.size = {4}, .align_corners = true}, {"f32[2]"}),
            "resize: align_corners is for mode linear; nearest takes floor(o in / out)");
  EXPECT_EQ(refusal<Resize>({.size = {4}}, {"f32[1,0]"}),
            "resize: x: f32[1,0] is empty along axis 1 and cannot become 4");
  EXPECT_EQ(refusal<Resize>({.size = {4}}, {"i32[2]"}),
            "resize: x: i32[2] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(refusal<ResizeBackward>({.size = {1, 2}}, {"f32[2]"}),
            "resize_backward: dy: f32[2] has rank 1; it must have rank 2 or more");
  EXPECT_EQ(refusal<ResizeNearest2x>({}, {"f32[2,2]"}),
            "resize_nearest2x: x: f32[2,2] has rank 2; it must have rank 4");
}

}  // namespace
}  // namespace rlx::ops
