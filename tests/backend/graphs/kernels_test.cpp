// Which kernels take which nodes, and what they compute at sizes and layouts that samples of operators do not
// have.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ops/all.h"
#include "tests/support/compare.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"
#include "tests/support/samples.h"

namespace rlx::backend {
namespace {

using test::graph;

// Builds, checks what runs, and compares with the interpreter at one and three threads; `weights`: the leaves
// that are.
void expect_kernels(const std::string& text, const std::vector<std::string>& want,
                    const std::vector<bool>& weights = {}, double tolerance = 1e-4) {
  const ir::Graph g = graph(text);
  const auto program = Builder(cpu::device(), 1).build(g, {.fixed = weights});
  std::vector<std::string> have;
  for (const Plan::Step& s : program->plan().steps) have.push_back(s.kernel);
  EXPECT_EQ(have, want) << program->plan().text();
  Literals leaves;
  for (const ir::NodeId id : g.leaves())
    leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 11 + leaves.size()));
  const Literals right = ir::interpret(g, leaves);
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(cat(threads, " threads"));
    test::expect_close(test::run_on(cpu::device(), g, leaves, {.threads = threads, .fixed = weights}), right,
                       tolerance);
  }
}

// At least one sample of each of these runs on a kernel of its own.
TEST(Kernels, run_operators_without_the_reference) {
  for (const std::string_view name : {"conv1d",
                                      "conv2d",
                                      "conv3d",
                                      "conv",
                                      "conv_transpose1d",
                                      "conv_transpose2d",
                                      "conv_transpose3d",
                                      "conv2d_backward_input",
                                      "conv2d_backward_weight",
                                      "dequant_matmul",
                                      "dequant_matmul_transposed",
                                      "dequant_grouped_matmul",
                                      "q_matmul",
                                      "concat",
                                      "pad",
                                      "dynamic_slice",
                                      "dynamic_update_slice",
                                      "iota",
                                      "one_hot",
                                      "cumsum",
                                      "cumprod",
                                      "cumsum_backward",
                                      "cummax",
                                      "cummin",
                                      "sort",
                                      "argsort",
                                      "top_k",
                                      "argmax",
                                      "argmin",
                                      "rope",
                                      "rope_backward",
                                      "group_norm",
                                      "group_norm_backward_input",
                                      "group_norm_backward_gamma",
                                      "group_norm_backward_beta",
                                      "pool",
                                      "maxpool2d_backward",
                                      "selective_scan",
                                      "gated_delta_net",
                                      "gated_delta_net_carry",
                                      "depthwise_conv1d_causal",
                                      "fft",
                                      "cholesky",
                                      "batched_dense_solve",
                                      "dense_solve",
                                      "inverse",
                                      "triangular_solve",
                                      "qr",
                                      "svd",
                                      "eigh",
                                      "attention_backward"}) {
    bool found = false;
    for (const ir::OpDef* op : test::ops_of(ops::table())) {
      if (op->name != name) continue;
      for (size_t i = 0; i < op->samples().size() && !found; ++i) {
        const auto c = test::make_case(*op, i);
        const auto program =
            Builder(cpu::device(), 2).build(c.graph, {.fixed = std::vector<bool>(c.leaves.size(), true)});
        for (const Plan::Step& s : program->plan().steps)
          found = found || (s.op == name && s.kernel != "reference");
      }
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST(Kernels, of_convolution_pack_weights_and_read_them_as_inputs) {
  const std::string text = R"(graph @conv(x: f32[2,16,19,23], w: f32[24,16,3,3]) {
    y = conv2d(x, w, kernel_size=[3,3], stride=[2,1], padding=[1,1,0,2], dilation=[1,2])
    return y
  })";
  expect_kernels(text, {"conv_f32"});
  expect_kernels(text, {"conv_f32"}, {false, true});
}

TEST(Kernels, of_convolution_take_the_forms_that_derivatives_write) {
  // The gradient in x: the kernel run backwards over a spread dy, channels of w exchanged.
  expect_kernels(R"(graph @dx(dy: f32[2,24,9,11], w: f32[24,16,3,3]) {
    t = transpose(w, perm=[1,0,2,3])
    y = conv(dy, t, stride=[1,1], padding=[-1,-1], dilation=[-1,-1], input_dilation=[2,2], size=(18,22))
    return y
  })",
                 {"copy", "conv_general_f32"});
  // The same in groups, weights fixed, different numbers of channels on both sides.
  expect_kernels(R"(graph @dx(dy: f32[2,12,9,11], w: f32[8,6,3,2]) {
    y = conv(dy, w, stride=[1,1], padding=[0,-1], dilation=[-1,-2], input_dilation=[1,2], groups=2, size=(11,24))
    return y
  })",
                 {"conv_general_f32"}, {false, true});
  expect_kernels(R"(graph @depthwise(dy: f32[2,12,9,11], w: f32[12,1,3,3]) {
    y = conv(dy, w, stride=[1,1], padding=[-1,-1], dilation=[-1,-1], input_dilation=[2,2], groups=12, size=(18,22))
    return y
  })",
                 {"conv_general_f32"});
  // Stride and dilation share a factor: most positions meet no tap.
  expect_kernels(R"(graph @gaps(dy: f32[2,4,4,6], w: f32[6,2,4,1]) {
    y = conv(dy, w, stride=[1,1], padding=[-1,-1], dilation=[-2,-2], input_dilation=[2,2], groups=2, size=(11,9))
    return y
  })",
                 {"conv_general_f32"});
  // The gradient in w: batch and channels exchanged in x and dy.
  expect_kernels(R"(graph @dw(x: f32[3,8,18,22], dy: f32[3,12,9,11]) {
    s = transpose(x, perm=[1,0,2,3])
    t = transpose(dy, perm=[1,0,2,3])
    y = conv(s, t, stride=[1,1], padding=[1,1], dilation=[2,2], size=(3,3))
    return y
  })",
                 {"conv_weight_gradient_f32"}, {}, 1e-3);
}

TEST(Kernels, of_transposed_convolution_drop_what_padding_cuts) {
  expect_kernels(R"(graph @up(x: f32[2,12,7,9], w: f32[12,5,4,3]) {
    y = conv_transpose2d(x, w, kernel_size=[4,3], stride=[3,2], padding=[2,1], dilation=[1,2], groups=3, output_padding=[1,1])
    return y
  })",
                 {"conv_input_gradient_f32"}, {false, true});
}

TEST(Kernels, of_shapes_read_strided_operands) {
  expect_kernels(R"(graph @concat(a: f32[40,30], b: f32[30,50]) {
    t = transpose(a, perm=[1,0])
    y = concat(t, b, axis=1)
    return y
  })",
                 {"concat_strided"});
  expect_kernels(R"(graph @pad(a: f32[5,6,7]) {
    t = transpose(a, perm=[2,0,1])
    y = pad(t, low=(1,0,2), high=(0,3,1), value=2.5)
    return y
  })",
                 {"pad_strided"});
}

TEST(Kernels, of_softmax_give_nan_for_rows_without_a_number) {
  const ir::Graph g =
      graph("graph @s(x: f32[3,20]) { y = softmax(x, axis=1) z = log_softmax(x, axis=1) return y, z }");
  std::vector<float> values(60, 1.0f);
  std::fill_n(values.begin(), 20, -INFINITY);
  values[25] = -INFINITY;
  values[47] = INFINITY;
  const Literal x = Literal::of<float>({3, 20}, values);
  test::expect_close(test::run_on(cpu::device(), g, {x}), ir::interpret(g, Literals{x}), 1e-5);
}

}  // namespace
}  // namespace rlx::backend
