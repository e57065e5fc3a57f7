// Convolutions and their gradients: which kernels take them and that those compile; on a GPU, equal to the interpreter at odd sizes, steps of all kinds,
// groups, one to three axes, all types.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/compile/compiler.h"
#include "rlx/backend/cuda/nodes/conv_rings.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

struct ConvCase {
  const char* name;
  const char* operands;  // x, w; T is the type
  const char* call;
};

// Tiles have 64 or 128 channels and positions, slices 16 or 64 terms: sizes lie below, at and above them.
constexpr ConvCase kForward[] = {
    {"borders", "x: T[2,64,14,14], w: T[64,64,3,3]", "conv2d(x, w, padding=[1,1])"},
    {"many_channels", "x: T[1,130,9,7], w: T[150,130,3,3]", "conv2d(x, w, padding=[1,1])"},
    {"three_channels", "x: T[2,3,31,29], w: T[24,3,7,7]", "conv2d(x, w, stride=[2,2], padding=[3,3])"},
    {"one_channel", "x: T[3,1,12,12], w: T[17,1,5,5]", "conv2d(x, w)"},
    {"one_output", "x: T[2,40,8,8], w: T[1,40,3,3]", "conv2d(x, w, padding=[1,1])"},
    {"points", "x: T[2,48,10,11], w: T[80,48,1,1]", "conv2d(x, w)"},
    {"points_with_strides", "x: T[2,48,10,11], w: T[80,48,1,1]", "conv2d(x, w, stride=[2,2])"},
    {"odd_steps", "x: T[2,13,17,15], w: T[22,13,2,3]",
     "conv2d(x, w, stride=[3,2], padding=[2,1], dilation=[2,3])"},
    {"more_behind", "x: T[2,8,9,9], w: T[16,8,4,4]", "conv2d(x, w, padding=[1,1,2,2])"},
    {"groups", "x: T[2,48,9,9], w: T[72,12,3,3]", "conv2d(x, w, padding=[1,1], groups=4)"},
    {"few_in_groups", "x: T[2,32,13,13], w: T[32,4,3,3]", "conv2d(x, w, padding=[1,1], groups=8)"},
    {"depthwise", "x: T[2,37,15,14], w: T[37,1,3,3]", "conv2d(x, w, padding=[1,1], groups=37)"},
    {"depthwise_strides", "x: T[2,16,15,14], w: T[48,1,5,5]",
     "conv2d(x, w, stride=[2,2], padding=[2,2], groups=16)"},
    {"line", "x: T[3,20,50], w: T[33,20,7]", "conv1d(x, w, padding=[3])"},
    {"line_dilated", "x: T[2,9,64], w: T[12,3,3]",
     "conv1d(x, w, stride=[2], padding=[4], dilation=[4], groups=3)"},
    {"depthwise_line", "x: T[2,70,40], w: T[70,1,4]", "conv1d(x, w, padding=[3], groups=70)"},
    {"volume", "x: T[2,6,5,7,6], w: T[10,6,3,2,3]", "conv3d(x, w, stride=[1,2,1], padding=[1,0,1])"},
    {"large_kernel", "x: T[2,5,20,20], w: T[6,5,18,18]", "conv2d(x, w)"},
    {"large_kernel_borders", "x: T[2,5,9,9], w: T[6,5,11,11]", "conv2d(x, w, padding=[3,3])"},
    {"empty_batch", "x: T[0,4,6,6], w: T[5,4,3,3]", "conv2d(x, w)"},
    {"transposed", "x: T[2,20,7,9], w: T[20,24,3,3]",
     "conv_transpose2d(x, w, stride=[2,2], padding=[1,1], output_padding=[1,1])"},
    {"transposed_gaps", "x: T[2,10,5,5], w: T[10,12,2,2]", "conv_transpose2d(x, w, stride=[3,2])"},
    {"transposed_groups", "x: T[2,12,6,6], w: T[12,5,4,4]",
     "conv_transpose2d(x, w, stride=[2,2], padding=[1,1], groups=3)"},
    {"transposed_dilated", "x: T[1,6,9], w: T[6,8,3]", "conv_transpose1d(x, w, stride=[2], dilation=[3])"},
    {"transposed_volume", "x: T[1,4,3,4,3], w: T[4,6,3,3,3]",
     "conv_transpose3d(x, w, stride=[2,1,2], padding=[1,1,1])"},
};

// A thread has four rows of results; of the last thread some lie beyond y, and what those would read lies behind x.
constexpr ConvCase kStrips[] = {
    {"behind", "x: T[2,16,7,64], w: T[16,1,3,3]", "conv2d(x, w, groups=16)"},
    {"far_behind", "x: T[1,8,23,64], w: T[8,1,5,3]", "conv2d(x, w, stride=[2,1], dilation=[2,1], groups=8)"},
};

// Enough tiles that the largest ones are chosen; the last has parts of sums besides.
constexpr ConvCase kLarge[] = {
    {"tiles", "x: T[8,64,28,28], w: T[256,64,3,3]", "conv2d(x, w, padding=[1,1])"},
    {"points", "x: T[16,8,56,56], w: T[256,8,1,1]", "conv2d(x, w)"},
    {"terms", "x: T[2,300,7,7], w: T[200,300,3,3]", "conv2d(x, w, padding=[1,1])"},
};

constexpr ConvCase kViews[] = {
    {"channels_last_weights", "x: T[2,24,9,8], w: T[40,3,3,24]",
     "conv2d(x, transpose(w, perm=[0,3,1,2]), padding=[1,1])"},
    {"channels_last_images", "x: T[2,9,8,24], w: T[40,24,3,3]",
     "conv2d(transpose(x, perm=[0,3,1,2]), w, padding=[1,1])"},
    {"channels_last_depthwise", "x: T[2,9,8,24], w: T[24,1,3,3]",
     "conv2d(transpose(x, perm=[0,3,1,2]), w, padding=[1,1], groups=24)"},
    {"part_of_an_image", "x: T[2,24,9,11], w: T[40,24,3,3]", "conv2d(narrow(x, axis=3, start=1, len=9), w)"},
};

// What rings of slices read: eight or four elements at once, of channels, images or terms (kernels/conv_rings.h).
constexpr ConvCase kRings[] = {
    {"chunks", "x: T[2,128,10,9], w: T[72,128,3,3]", "conv2d(x, w, padding=[1,1])"},
    {"chunks_with_strides", "x: T[2,64,12,11], w: T[130,64,3,3]",
     "conv2d(x, w, stride=[2,2], padding=[1,1])"},
    {"chunks_in_groups", "x: T[2,128,7,7], w: T[140,64,3,3]", "conv2d(x, w, padding=[1,1], groups=2)"},
    {"points_of_eights", "x: T[3,72,8,8], w: T[80,72,1,1]", "conv2d(x, w)"},
    {"points_of_fours", "x: T[3,64,6,6], w: T[200,64,1,1]", "conv2d(x, w)"},
    {"points_in_groups", "x: T[2,48,4,8], w: T[144,24,1,1]", "conv2d(x, w, groups=2)"},
    {"points_elsewhere", "x: T[3073], w: T[80,16,1,1]",
     "conv2d(reshape(narrow(x, axis=0, start=1, len=3072), shape=(1,16,12,16)), w)"},
    {"volume_of_chunks", "x: T[1,64,4,5,6], w: T[70,64,3,2,3]",
     "conv3d(x, w, stride=[1,2,1], padding=[1,0,1])"},
    {"weight_of_fours", "x: T[3,24,10,10], w: T[3,70,10,10]",
     "conv2d_backward_weight(x, w, w_shape=(70,24,3,3), padding=[1,1])"},
    {"weight_of_odd_images", "x: T[9,72,7,7], w: T[9,66,7,7]",
     "conv2d_backward_weight(x, w, w_shape=(66,72,3,3), padding=[1,1])"},
    {"weight_points_of_fours", "x: T[3,136,10,10], w: T[3,40,10,10]",
     "conv2d_backward_weight(x, w, w_shape=(40,136,1,1))"},
    {"weight_points_of_odd_images", "x: T[3,40,7,7], w: T[3,70,7,7]",
     "conv2d_backward_weight(x, w, w_shape=(70,40,1,1))"},
};

constexpr ConvCase kBehind[] = {
    {"bias_relu", "x: T[2,20,10,9], w: T[70,20,3,3], b: T[1,70,1,1]",
     "relu(add(conv2d(x, w, padding=[1,1]), b))"},
    {"residual", "x: T[2,24,8,8], w: T[24,24,3,3], s: T[1,24,1,1], b: T[1,24,1,1]",
     "relu(add(add(mul(conv2d(x, w, padding=[1,1]), s), b), x))"},
    {"parts_of_sums", "x: T[1,260,3,3], w: T[9,260,3,3], b: T[1,9,1,1]",
     "tanh(add(conv2d(x, w, padding=[1,1]), b))"},
    {"classes", "x: T[2,20,7,9], w: T[20,24,3,3], b: T[1,24,1,1]",
     "relu(add(conv_transpose2d(x, w, stride=[2,2], padding=[1,1]), b))"},
    {"depthwise", "x: T[2,24,9,9], w: T[24,1,3,3], b: T[1,24,1,1]",
     "sigmoid(add(conv2d(x, w, padding=[1,1], groups=24), b))"},
};

constexpr ConvCase kPools[] = {
    {"max", "x: T[2,5,13,12]", "pool(x, kind=max, kernel_size=[3,3], stride=[2,2], padding=[1,1])"},
    {"min_line", "x: T[4,33]", "pool(x, kind=min, kernel_size=[4])"},
    {"mean_inside", "x: T[2,3,9,9]", "pool(x, kind=mean, kernel_size=[3,3], stride=[2,2], padding=[1,1])"},
    {"mean_of_all", "x: T[2,3,9,9]",
     "pool(x, kind=mean, kernel_size=[3,3], stride=[2,2], padding=[1,1], count_include_pad=true)"},
    {"sum_volume", "x: T[2,4,5,6]", "pool(x, kind=sum, kernel_size=[2,3,2], stride=[1,1,2])"},
    {"prod", "x: T[3,10]", "pool(x, kind=prod, kernel_size=[3], stride=[1], padding=[1])"},
};

// Windows that overlap, leave gaps or lie partly outside.
constexpr ConvCase kPoolGradients[] = {
    {"overlap", "x: T[2,5,13,12], dy: T[2,5,7,6]",
     "maxpool2d_backward(x, dy, kernel_size=[3,3], stride=[2,2], padding=[1,1])"},
    {"side_by_side", "x: T[3,8,9], dy: T[3,4,3]", "maxpool2d_backward(x, dy, kernel_size=[2,3])"},
    {"gaps", "x: T[2,2,11,10], dy: T[2,2,4,3]", "maxpool2d_backward(x, dy, kernel_size=[2,2], stride=[3,4])"},
};

constexpr ConvCase kGradients[] = {
    {"input", "x: T[2,70,14,14], w: T[70,33,3,3]",
     "conv2d_backward_input(x, w, x_shape=(2,33,14,14), padding=[1,1])"},
    {"input_strides", "x: T[2,40,7,7], w: T[40,24,3,3]",
     "conv2d_backward_input(x, w, x_shape=(2,24,14,14), stride=[2,2], padding=[1,1])"},
    {"input_first_layer", "x: T[2,16,8,8], w: T[16,3,7,7]",
     "conv2d_backward_input(x, w, x_shape=(2,3,16,16), stride=[2,2], padding=[3,3])"},
    {"input_points", "x: T[2,40,5,5], w: T[40,24,1,1]",
     "conv2d_backward_input(x, w, x_shape=(2,24,9,9), stride=[2,2])"},
    {"input_groups", "x: T[2,24,9,9], w: T[24,6,3,3]",
     "conv2d_backward_input(x, w, x_shape=(2,24,9,9), padding=[1,1], groups=4)"},
    {"input_depthwise", "x: T[2,24,8,8], w: T[24,1,3,3]",
     "conv2d_backward_input(x, w, x_shape=(2,24,16,16), stride=[2,2], padding=[1,1], groups=24)"},
    {"weight", "x: T[4,20,16,16], w: T[4,70,16,16]",
     "conv2d_backward_weight(x, w, w_shape=(70,20,3,3), padding=[1,1])"},
    {"weight_odd", "x: T[3,9,15,13], w: T[3,20,15,13]",
     "conv2d_backward_weight(x, w, w_shape=(20,9,3,3), padding=[1,1])"},
    {"weight_strides", "x: T[3,24,14,14], w: T[3,40,7,7]",
     "conv2d_backward_weight(x, w, w_shape=(40,24,3,3), stride=[2,2], padding=[1,1])"},
    {"weight_first_layer", "x: T[2,3,32,32], w: T[2,16,16,16]",
     "conv2d_backward_weight(x, w, w_shape=(16,3,7,7), stride=[2,2], padding=[3,3])"},
    {"weight_points", "x: T[3,24,12,12], w: T[3,40,12,12]",
     "conv2d_backward_weight(x, w, w_shape=(40,24,1,1))"},
    {"weight_groups", "x: T[2,24,9,9], w: T[2,24,9,9]",
     "conv2d_backward_weight(x, w, w_shape=(24,6,3,3), padding=[1,1], groups=4)"},
    {"weight_depthwise", "x: T[2,24,20,20], w: T[2,24,20,20]",
     "conv2d_backward_weight(x, w, w_shape=(24,1,3,3), padding=[1,1], groups=24)"},
    {"weight_few_images", "x: T[70,9,3,3], w: T[70,20,3,3]",
     "conv2d_backward_weight(x, w, w_shape=(20,9,3,3), padding=[1,1])"},
};

std::string text_of(const ConvCase& c, const std::string& type) {
  std::string operands = c.operands;
  for (size_t at = 0; (at = operands.find(": T[", at)) != std::string::npos;)
    operands.replace(at + 2, 1, type);
  return cat("graph @f(", operands, ") { y = ", c.call, " return y }");
}

class ConvOnDevice : public test::OnDevice {
 protected:
  void compare(std::span<const ConvCase> cases, const std::string& type) {
    for (const ConvCase& c : cases) {
      SCOPED_TRACE(cat(c.name, ", ", type));
      const ir::Graph g = test::graph(text_of(c, type));
      // Sums of hundreds of products; what is rounded to 16 bits is the result alone.
      test::expect_as_interpreted(g, test::named(g, test::sample_leaves(g)), type == "f32" ? 1e-4 : 1e-9);
    }
  }
};

TEST_F(ConvOnDevice, forward_f32) { compare(kForward, "f32"); }
TEST_F(ConvOnDevice, forward_f64) { compare(kForward, "f64"); }
TEST_F(ConvOnDevice, forward_f16) { compare(kForward, "f16"); }
TEST_F(ConvOnDevice, forward_bf16) { compare(kForward, "bf16"); }
TEST_F(ConvOnDevice, strips) { compare(kStrips, "f32"); }
TEST_F(ConvOnDevice, large) {
  for (const char* type : {"f32", "bf16"}) compare(kLarge, type);
}
TEST_F(ConvOnDevice, views) {
  for (const char* type : {"f32", "bf16"}) compare(kViews, type);
}
TEST_F(ConvOnDevice, elements_behind) {
  for (const char* type : {"f32", "f64", "f16", "bf16"}) compare(kBehind, type);
}
TEST_F(ConvOnDevice, pools) {
  for (const char* type : {"f32", "f64", "f16", "bf16"}) compare(kPools, type);
}
TEST_F(ConvOnDevice, gradients_of_max_pools) {
  for (const char* type : {"f32", "f64", "f16", "bf16"}) compare(kPoolGradients, type);
}
TEST_F(ConvOnDevice, gradients_f32) { compare(kGradients, "f32"); }
TEST_F(ConvOnDevice, gradients_f64) { compare(kGradients, "f64"); }
TEST_F(ConvOnDevice, gradients_f16) { compare(kGradients, "f16"); }
TEST_F(ConvOnDevice, gradients_bf16) { compare(kGradients, "bf16"); }

TEST_F(ConvOnDevice, rings) {
  for (const char* type : {"f32", "f16", "bf16"}) compare(kRings, type);
}

// Parts of long sums are added in a fixed order.
TEST_F(ConvOnDevice, equal_runs_give_equal_bits) {
  for (const char* type : {"f32", "bf16"}) {
    const ir::Graph g =
        test::graph(cat("graph @f(x: ", type, "[8,32,28,28], dy: ", type, "[8,64,28,28]) {",
                        " y = conv2d_backward_weight(x, dy, w_shape=(64,32,3,3), padding=[1,1]) return y }"));
    const NamedLiterals leaves = test::named(g, test::sample_leaves(g));
    CompiledGraph f = compile(g, {}, {.device = "cuda"});
    const Literal first = f.run(leaves).at("y");
    for (int i = 0; i < 5; ++i) {
      const Literal again = f.run(leaves).at("y");
      EXPECT_TRUE(std::ranges::equal(first.bytes(), again.bytes())) << type;
    }
  }
}

// ---- without a GPU ----

struct Planned {
  std::string kernels, notes;
};

Planned planned(const std::string& text, const char* architecture) {
  const cuda::Device device(architecture, nullptr);
  std::vector<passes::Remark> remarks;
  const auto program =
      backend::Builder(device, 1).build(runtime::specialise(test::graph(text), device, {}, remarks));
  for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
  Planned out;
  for (const auto& s : program->plan().steps) out.kernels += s.kernel + " ", out.notes += s.note + "; ";
  if (cuda::compiler_problem().empty()) device.functions().compile_waiting();
  return out;
}

TEST(ConvPlan, every_convolution_has_a_kernel_of_its_own) {
  for (const auto& cases : {std::span<const ConvCase>(kForward), std::span<const ConvCase>(kGradients)}) {
    for (size_t i = 0; i < cases.size(); i += 3) {
      SCOPED_TRACE(cases[i].name);
      // An architecture and a type for each: compiling all of them takes minutes.
      const std::string kernels =
          planned(text_of(cases[i], i % 2 == 0 ? "f32" : "bf16"), i % 4 < 2 ? "sm_90a" : "sm_80").kernels;
      EXPECT_NE(kernels.find("conv_"), std::string::npos) << kernels;
      EXPECT_EQ(kernels.find("conv_direct"), std::string::npos) << kernels;
      EXPECT_EQ(kernels.find("on_host"), std::string::npos) << kernels;
    }
  }
}

TEST(ConvPlan, elements_behind_are_part_of_the_kernel) {
  for (const ConvCase& c : kBehind) {
    const std::string kernels = planned(text_of(c, "bf16"), "sm_90a").kernels;
    EXPECT_NE(kernels.find("conv_group "), std::string::npos) << c.name << ": " << kernels;
    EXPECT_EQ(kernels.find("region"), std::string::npos) << c.name << ": " << kernels;
  }
  // A second reader wants the results of the convolution themselves, and so does the caller.
  EXPECT_EQ(
      planned("graph @f(x: f32[2,20,9,9], w: f32[70,20,3,3]) { c = conv2d(x, w) y = relu(c) return y, c=c }",
              "sm_90a")
          .kernels.find("conv_group"),
      std::string::npos);
}

TEST(ConvPlan, small_windows_are_not_written_down) {
  for (const ConvCase& c : kPools) EXPECT_EQ(planned(text_of(c, "f32"), "sm_90a").kernels, "pool ") << c.name;
  for (const ConvCase& c : kPoolGradients) {
    const std::string kernels = planned(text_of(c, "f32"), "sm_90a").kernels;
    EXPECT_NE(kernels.find("max_pool_gradient "), std::string::npos) << c.name << ": " << kernels;
    EXPECT_EQ(kernels.find("windows"), std::string::npos) << c.name << ": " << kernels;
  }
}

TEST(ConvPlan, layers_of_resnet_fill_the_processors) {
  const auto notes = [](const char* text) { return planned(text, "sm_90a").notes; };
  // 132 tiles for 132 processors.
  EXPECT_NE(
      notes(
          "graph @f(x: bf16[32,256,14,14], w: bf16[256,256,3,3]) { y = conv2d(x, w, padding=[1,1]) return y }")
          .find("tiles of 128 x 96, x turned"),
      std::string::npos);
  // Weights of 9 taps and 64 x 64 channels are few results of long sums.
  EXPECT_NE(
      notes(
          "graph @f(x: f32[32,64,56,56], dy: f32[32,64,56,56]) { y = conv2d_backward_weight(x, dy, w_shape=(64,64,3,3), "
          "padding=[1,1]) return y }")
          .find("x turned, terms in"),
      std::string::npos);
  // The gradient in the input of a convolution with strides multiplies with no zeros: four classes of results.
  EXPECT_NE(
      notes(
          "graph @f(dy: f32[8,128,28,28], w: f32[128,64,3,3]) { y = conv2d_backward_input(dy, w, x_shape=(8,64,56,56), "
          "stride=[2,2], padding=[1,1]) return y }")
          .find("4 classes of results"),
      std::string::npos);
}

// A layer of ResNet of 32 images in bf16: a convolution, or the gradient in its weights, which is one over images as channels.
cuda::ConvPart layer(int64_t inputs, int64_t outputs, int64_t size, int64_t kernel, int64_t stride,
                     bool weight) {
  constexpr int64_t kBatch = 32;
  const int64_t out = size / stride;
  cuda::ConvPart p{.dtype = DType::bf16, .batch = kBatch, .inputs = inputs, .outputs = outputs};
  p.x = {1, size, size}, p.y = {1, out, out}, p.w = {1, kernel, kernel};
  p.stride = {1, stride, stride}, p.start = {0, -(kernel / 2), -(kernel / 2)};
  p.xs = {.outer = inputs * size * size, .channel = size * size, .axis = {size * size, size, 1}};
  p.ys = {.outer = outputs * out * out, .channel = out * out, .axis = {out * out, out, 1}};
  p.ws = {
      .outer = inputs * kernel * kernel, .channel = kernel * kernel, .axis = {kernel * kernel, kernel, 1}};
  if (!weight) return p;
  std::swap(p.batch, p.inputs), std::swap(p.y, p.w), std::swap(p.stride, p.dilation), std::swap(p.ys, p.ws);
  std::swap(p.xs.outer, p.xs.channel), std::swap(p.ws.outer, p.ws.channel),
      std::swap(p.ys.outer, p.ys.channel);
  return p;
}

void expect_no_spills(const cuda::ConvPlan& plan) {
  for (const cuda::ConvLaunch& l : plan.launches) {
    const std::string report = cuda::resource_report(l.function->source(), "sm_90a");
    EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << plan.note << report;
    EXPECT_EQ(report.find("serialized"), std::string::npos)
        << plan.note << report;  // products that wait for each other
  }
}

TEST(ConvPlan, rings_of_resnet_have_no_spills) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device device("sm_90a", nullptr);
  for (const bool weight : {false, true}) {
    for (const auto& p : {layer(64, 64, 56, 3, 1, weight), layer(128, 128, 28, 3, 1, weight),
                          layer(256, 256, 14, 3, 1, weight), layer(512, 512, 7, 3, 1, weight),
                          layer(64, 256, 56, 1, 1, weight), layer(256, 64, 56, 1, 1, weight),
                          layer(1024, 256, 14, 1, 1, weight), layer(3, 64, 224, 7, 2, weight)}) {
      const std::vector<cuda::ConvWay> ways = cuda::ring_ways(device, p);
      ASSERT_FALSE(ways.empty());
      const cuda::ConvPlan plan = ways.front()(device, p, cuda::plain_results(p.dtype));
      expect_no_spills(plan);
    }
  }
}

TEST(ConvPlan, tiles_of_resnet_have_no_spills) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device device("sm_90a", nullptr);
  for (const bool weight : {false, true}) {
    for (cuda::ConvPart p : {layer(64, 64, 56, 3, 1, weight), layer(256, 256, 14, 3, 1, weight)}) {
      p.dtype = DType::f32;
      expect_no_spills(cuda::plan_conv_slices(device, p, cuda::plain_results(p.dtype)));
    }
  }
}

}  // namespace
}  // namespace rlx
