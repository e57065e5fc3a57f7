// Rows of the public surface: gradients called by hand, against differences of the forward builder.
#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;

const Literal kX = mixed({2, 3}, 1), kDy = mixed({2, 3}, 2), kGamma = mixed({3}, 3), kBeta = mixed({3}, 4);

TEST(GraphRow, relu_backward) {
  expect_row(
      {f64({3}, {-1, 0, 2}), f64({3}, {5, 6, 7})},
      [](Graph& g, const Values& v) { return g.relu_backward(v[0], v[1]); }, f64({3}, {0, 0, 7}));
}
TEST(GraphRow, activation_backward) {
  for (const Activation kind : {Activation::gelu, Activation::silu, Activation::tanh, Activation::cos}) {
    expect_row(
        {kX, kDy}, [&](Graph& g, const Values& v) { return g.activation_backward(kind, v[0], v[1]); },
        difference_gradient({kX}, 0, kDy,
                            [&](Graph& g, const Values& v) { return g.activation(kind, v[0]); }),
        1e-8);
  }
}
TEST(GraphRow, complex_norm_sq_backward) {
  expect_row(
      {c64({1}, {{3, 4}}), f32({1}, {2})},
      [](Graph& g, const Values& v) { return g.complex_norm_sq_backward(v[0], v[1]); }, c64({1}, {{6, 8}}));
}
TEST(GraphRow, layer_norm_backward_input) {
  const auto forward = [](Graph& g, const Values& v) { return g.layer_norm(v[0], v[1], v[2], -1, 1e-3); };
  expect_row(
      {kX, kGamma, kDy},
      [](Graph& g, const Values& v) { return g.layer_norm_backward_input(v[0], v[1], v[2], -1, 1e-3); },
      difference_gradient({kX, kGamma, kBeta}, 0, kDy, forward), 1e-8);
}
TEST(GraphRow, layer_norm_backward_gamma) {
  const auto forward = [](Graph& g, const Values& v) { return g.layer_norm(v[0], v[1], v[2], -1, 1e-3); };
  expect_row(
      {kX, kDy},
      [](Graph& g, const Values& v) { return g.layer_norm_backward_gamma(v[0], v[1], {3}, -1, 1e-3); },
      difference_gradient({kX, kGamma, kBeta}, 1, kDy, forward), 1e-8);
}
Value rms(Graph& g, const Values& v) { return g.rms_norm(v[0], v[1], v[2], 1e-3); }
const Literals kRms = {kX, kGamma, kBeta, kDy};
TEST(GraphRow, rms_norm_backward_input) {
  expect_row(
      kRms,
      [](Graph& g, const Values& v) { return g.rms_norm_backward_input(v[0], v[1], v[2], v[3], -1, 1e-3); },
      difference_gradient({kX, kGamma, kBeta}, 0, kDy, rms), 1e-8);
}
TEST(GraphRow, rms_norm_backward_gamma) {
  expect_row(
      kRms,
      [](Graph& g, const Values& v) { return g.rms_norm_backward_gamma(v[0], v[1], v[2], v[3], -1, 1e-3); },
      difference_gradient({kX, kGamma, kBeta}, 1, kDy, rms), 1e-8);
}
TEST(GraphRow, rms_norm_backward_beta) {
  expect_row(
      kRms,
      [](Graph& g, const Values& v) { return g.rms_norm_backward_beta(v[0], v[1], v[2], v[3], -1, 1e-3); },
      difference_gradient({kX, kGamma, kBeta}, 2, kDy, rms), 1e-8);
}
const Literal kImage = mixed({1, 4, 2, 2}, 5), kDImage = mixed({1, 4, 2, 2}, 6), kGamma4 = mixed({4}, 7),
              kBeta4 = mixed({4}, 8);
Value grouped(Graph& g, const Values& v) { return g.group_norm(v[0], v[1], v[2], 2, 1e-3); }
TEST(GraphRow, group_norm_backward_input) {
  expect_row(
      {kImage, kGamma4, kBeta4, kDImage},
      [](Graph& g, const Values& v) { return g.group_norm_backward_input(v[0], v[1], v[2], v[3], 2, 1e-3); },
      difference_gradient({kImage, kGamma4, kBeta4}, 0, kDImage, grouped), 1e-8);
}
TEST(GraphRow, group_norm_backward_gamma) {
  expect_row(
      {kImage, kDImage},
      [](Graph& g, const Values& v) { return g.group_norm_backward_gamma(v[0], v[1], {4}, 2, 1e-3); },
      difference_gradient({kImage, kGamma4, kBeta4}, 1, kDImage, grouped), 1e-8);
}
TEST(GraphRow, group_norm_backward_beta) {
  expect_row(
      {kImage, kDImage},
      [](Graph& g, const Values& v) { return g.group_norm_backward_beta(v[0], v[1], {4}, 2, 1e-3); },
      difference_gradient({kImage, kGamma4, kBeta4}, 2, kDImage, grouped), 1e-8);
}
TEST(GraphRow, cumsum_backward) {
  expect_row(
      {f64({3}, {1, 2, 4})}, [](Graph& g, const Values& v) { return g.cumsum_backward(v[0], 0, false); },
      f64({3}, {7, 6, 4}));
  expect_row(
      {f64({3}, {1, 2, 4})}, [](Graph& g, const Values& v) { return g.cumsum_backward(v[0], 0, true); },
      f64({3}, {6, 4, 0}));
}
TEST(GraphRow, gather_backward) {
  // Rows 2, 0, 2 of three: row 2 gets two, row 1 none.
  expect_row(
      {f64({3, 1}, {1, 2, 4}), i32({3}, {2, 0, 2})},
      [](Graph& g, const Values& v) { return g.gather_backward(v[0], v[1], {3, 1}, 0); },
      f64({3, 1}, {2, 0, 5}));
}
TEST(GraphRow, maxpool2d_backward) {
  expect_row(
      {f64({1, 1, 1, 4}, {1, 3, 7, 5}), f64({1, 1, 1, 2}, {10, 20})},
      [](Graph& g, const Values& v) { return g.maxpool2d_backward(v[0], v[1], {1, 2}, {1, 2}, {0, 0}); },
      f64({1, 1, 1, 4}, {0, 10, 20, 0}));
}
const Literal kPicture = mixed({1, 2, 3, 4}, 9), kKernel = mixed({3, 2, 2, 2}, 10),
              kDConv = mixed({1, 3, 2, 2}, 11);
Value convolved(Graph& g, const Values& v) { return g.conv2d(v[0], v[1], {2, 2}, {1, 2}, {0, 0}, {1, 1}, 1); }
TEST(GraphRow, conv2d_backward_input) {
  expect_row(
      {kDConv, kKernel},
      [](Graph& g, const Values& v) {
        return g.conv2d_backward_input(v[0], v[1], {1, 2, 3, 4}, {2, 2}, {1, 2}, {0, 0}, {1, 1}, 1);
      },
      difference_gradient({kPicture, kKernel}, 0, kDConv, convolved), 1e-8);
}
TEST(GraphRow, conv2d_backward_weight) {
  expect_row(
      {kPicture, kDConv},
      [](Graph& g, const Values& v) {
        return g.conv2d_backward_weight(v[0], v[1], {3, 2, 2, 2}, {2, 2}, {1, 2}, {0, 0}, {1, 1}, 1);
      },
      difference_gradient({kPicture, kKernel}, 1, kDConv, convolved), 1e-8);
}
TEST(GraphRow, softmax_cross_entropy_backward) {
  const Literal labels = i32({2}, {2, 0}), d = f64({2}, {1, -2});
  expect_row(
      {kX, labels, d},
      [](Graph& g, const Values& v) { return g.softmax_cross_entropy_backward(v[0], v[1], v[2]); },
      difference_gradient(
          {kX, labels}, 0, d,
          [](Graph& g, const Values& v) { return g.softmax_cross_entropy_with_logits(v[0], v[1]); }),
      1e-8);
}

}  // namespace
}  // namespace rlx
