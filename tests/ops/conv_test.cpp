#include <gtest/gtest.h>

#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/depthwise_causal.h"
#include "rlx/ops/conv/pool.h"
#include "rlx/ops/conv/resize.h"
#include "rlx/ops/conv/windows.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& v) { return Literal::of<double>(std::move(dims), v); }

Literal count(Dims dims) {
  std::vector<double> v(size_t(product(dims).value()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = double(i + 1);
  return reals(std::move(dims), v);
}

template <class Build>
Literal one(const Literals& in, Build build) {
  return evaluate(in, build)[0];
}

TEST(Conv, correlates_without_turning_the_kernel) {
  const auto y = one({reals({1, 1, 4}, {1, 2, 3, 4}), reals({1, 1, 2}, {1, 10})},
                     [](const Exprs& t) { return conv1d(t[0], t[1]); });
  expect_close(y, reals({1, 1, 3}, {21, 32, 43}), 0);
}

TEST(Conv, strides_dilates_and_pads) {
  const auto y = one({reals({1, 1, 5}, {1, 2, 3, 4, 5}), reals({1, 1, 2}, {1, 10})},
                     [](const Exprs& t) { return conv1d(t[0], t[1], {2}, {2}, {1}, {2}); });
  expect_close(y, reals({1, 1, 3}, {20, 42, 4}), 0);  // windows (0,2) (2,4) (4,0)
}

TEST(Conv, pads_the_two_sides_differently) {
  const auto y = one({reals({1, 1, 3}, {1, 2, 3}), reals({1, 1, 2}, {1, 10})},
                     [](const Exprs& t) { return conv1d(t[0], t[1], {2}, {1}, {1, 0}); });
  expect_close(y, reals({1, 1, 3}, {10, 21, 32}), 0);
}

TEST(Conv, groups_see_their_own_channels) {
  const auto y = one({reals({1, 2, 2}, {1, 2, 3, 4}), reals({2, 1, 1}, {10, 100})},
                     [](const Exprs& t) { return conv1d(t[0], t[1], {1}, {1}, {0}, {1}, 2); });
  expect_close(y, reals({1, 2, 2}, {10, 20, 300, 400}), 0);
}

TEST(Conv, of_images_and_volumes) {
  const auto y = one({count({1, 1, 3, 3}), reals({1, 1, 2, 2}, {1, 0, 0, 1})},
                     [](const Exprs& t) { return conv2d(t[0], t[1]); });
  expect_close(y, reals({1, 1, 2, 2}, {6, 8, 12, 14}), 0);
  const auto z = one({count({1, 1, 2, 2, 2}), reals({1, 1, 2, 2, 2}, {1, 0, 0, 0, 0, 0, 0, 1})},
                     [](const Exprs& t) { return conv3d(t[0], t[1]); });
  expect_close(z, reals({1, 1, 1, 1, 1}, {9}), 0);
}

TEST(ConvTranspose, scatters_each_input_times_the_kernel) {
  const auto y = one({reals({1, 1, 2}, {1, 2}), reals({1, 1, 3}, {1, 10, 100})},
                     [](const Exprs& t) { return conv_transpose1d(t[0], t[1], {3}, {2}, {1}, {1}, {1}); });
  // Scattered: 1 10 100+2 20 200, padding cuts one on the left and one on the right, output padding adds one.
  expect_close(y, reals({1, 1, 4}, {10, 102, 20, 200}), 0);
}

TEST(ConvTranspose, weights_have_the_input_channels_first) {
  const auto y = one({reals({1, 2, 1, 1}, {1, 10}), reals({2, 3, 1, 1}, {1, 2, 3, 4, 5, 6})},
                     [](const Exprs& t) { return conv_transpose2d(t[0], t[1]); });
  expect_close(y, reals({1, 3, 1, 1}, {41, 52, 63}), 0);
}

TEST(ConvBackward, are_the_transposes_of_conv2d) {
  const Literal dy = reals({1, 1, 1, 2}, {1, 10}), w = reals({1, 1, 1, 2}, {2, 3}),
                x = reals({1, 1, 1, 4}, {1, 2, 4, 8});
  // y[o] = x[2o] w[0] + x[2o+1] w[1]
  expect_close(
      one({dy, w},
          [](const Exprs& t) { return conv2d_backward_input(t[0], t[1], {1, 1, 1, 4}, {1, 2}, {1, 2}); }),
      reals({1, 1, 1, 4}, {2, 3, 20, 30}), 0);
  expect_close(
      one({x, dy},
          [](const Exprs& t) { return conv2d_backward_weight(t[0], t[1], {1, 1, 1, 2}, {1, 2}, {1, 2}); }),
      reals({1, 1, 1, 2}, {41, 82}), 0);
}

TEST(ConvBackward, reaches_inputs_that_no_window_touches_with_zero) {
  const auto dx = one({reals({1, 1, 1, 1}, {5}), reals({1, 1, 2, 2}, {1, 2, 3, 4})}, [](const Exprs& t) {
    return conv2d_backward_input(t[0], t[1], {1, 1, 3, 3}, {}, {2});
  });
  expect_close(dx, reals({1, 1, 3, 3}, {5, 10, 0, 15, 20, 0, 0, 0, 0}), 0);
}

TEST(DepthwiseCausal, continues_from_the_left_pad) {
  const auto y =
      one({reals({1, 2, 2}, {1, 2, 3, 4}), reals({2, 1, 1, 2}, {1, 10, 100, 1000}), reals({1, 1, 2}, {7, 8})},
          [](const Exprs& t) { return depthwise_conv1d_causal(t[0], t[1], t[2]); });
  expect_close(y, reals({1, 2, 2}, {17, 2800, 31, 4200}), 0);
}

Literal pooled(const Literal& x, ReduceOp kind, std::vector<int64_t> kernel, std::vector<int64_t> stride,
               std::vector<int64_t> padding, bool count_pad = false) {
  return one({x}, [&](const Exprs& t) { return pool(t[0], kind, kernel, stride, padding, count_pad); });
}

TEST(Pool, max_ignores_padding_even_below_zero) {
  expect_close(pooled(reals({3}, {-5, -2, -3}), ReduceOp::max, {2}, {2}, {1}), reals({2}, {-5, -2}), 0);
}

TEST(Pool, mean_does_not_count_padding_unless_asked) {
  const Literal x = reals({3}, {2, 4, 6});
  expect_close(pooled(x, ReduceOp::mean, {2}, {2}, {1}), reals({2}, {2, 5}), 0);
  expect_close(pooled(x, ReduceOp::mean, {2}, {2}, {1}, true), reals({2}, {1, 5}), 0);
}

TEST(Pool, min_and_prod_are_not_sums) {
  const Literal x = reals({2, 2}, {2, 3, 5, 7});
  expect_close(pooled(x, ReduceOp::min, {2, 2}, {}, {}), reals({1, 1}, {2}), 0);
  expect_close(pooled(x, ReduceOp::prod, {2, 2}, {}, {}), reals({1, 1}, {210}), 0);
  expect_close(pooled(x, ReduceOp::prod, {2, 1}, {1}, {1, 0}), reals({3, 2}, {2, 3, 10, 21, 5, 7}), 0);
  expect_close(pooled(x, ReduceOp::sum, {2, 2}, {}, {}), reals({1, 1}, {17}), 0);
}

TEST(Pool, of_integers_pads_with_the_least_number) {
  const auto y = one({Literal::of<int32_t>({2}, {-7, -9})},
                     [](const Exprs& t) { return pool(t[0], ReduceOp::max, {2}, {1}, {1}); });
  expect_close(y, Literal::of<int32_t>({3}, {-7, -7, -9}), 0);
}

TEST(MaxPoolBackward, gives_the_first_of_equal_maxima_everything) {
  const auto dx = one({reals({2, 2}, {3, 3, 1, 3}), reals({1, 1}, {5})},
                      [](const Exprs& t) { return maxpool2d_backward(t[0], t[1], {2}); });
  expect_close(dx, reals({2, 2}, {5, 0, 0, 0}), 0);
}

TEST(MaxPoolBackward, adds_where_windows_overlap) {
  const auto dx = one({reals({1, 3}, {1, 9, 2}), reals({1, 2}, {5, 7})},
                      [](const Exprs& t) { return maxpool2d_backward(t[0], t[1], {1, 2}, {1}); });
  expect_close(dx, reals({1, 3}, {0, 12, 0}), 0);
}

TEST(Windows, and_their_sum_count_each_place_as_often_as_it_is_covered) {
  const auto y = evaluate({reals({4}, {1, 2, 3, 4})}, [](const Exprs& t) {
    const Expr w = windows(t[0], {2}, {1}, {1});
    return Exprs{w, windows_sum(w, {4}, {1}, {1})};
  });
  expect_close(y[0], reals({5, 2}, {0, 1, 1, 2, 2, 3, 3, 4, 4, 0}), 0);
  expect_close(y[1], reals({4}, {2, 4, 6, 8}), 0);
}

TEST(Resize, nearest_takes_the_floor) {
  expect_close(
      one({reals({3}, {1, 2, 3})}, [](const Exprs& t) { return resize(t[0], ResizeMode::nearest, {5}); }),
      reals({5}, {1, 1, 2, 2, 3}), 0);
  expect_close(one({reals({1, 1, 1, 2}, {1, 2})}, [](const Exprs& t) { return resize_nearest2x(t[0]); }),
               reals({1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2}), 0);
}

TEST(Resize, linear_measures_from_the_centres_or_the_corners) {
  const Literal x = reals({2}, {0, 4});
  expect_close(one({x}, [](const Exprs& t) { return resize(t[0], ResizeMode::linear, {4}); }),
               reals({4}, {0, 1, 3, 4}), 1e-15);
  expect_close(one({x}, [](const Exprs& t) { return resize(t[0], ResizeMode::linear, {5}, true); }),
               reals({5}, {0, 1, 2, 3, 4}), 1e-15);
  expect_close(one({reals({1, 1, 2}, {0, 4})},
                   [](const Exprs& t) { return resize_scaled(t[0], ResizeMode::linear, 2); }),
               reals({1, 1, 4}, {0, 1, 3, 4}), 1e-15);
}

}  // namespace
}  // namespace rlx::ops
