#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/norm/axis_norm_backward.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/norm/residual_norm.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& v) { return Literal::of<double>(std::move(dims), v); }

template <class Build>
Literal one(const Literals& in, Build build) {
  return evaluate(in, build)[0];
}

// Mean 3, variance 3.5; with eps 0.5 the root is 2.
const std::vector<double> kRow{1, 2, 3, 6}, kHat{-1, -0.5, 0, 1.5};

TEST(LayerNorm, scales_and_shifts_the_normalised_row) {
  const auto y = one({reals({1, 4}, kRow), reals({4}, {1, 2, 3, 4}), reals({4}, {10, 20, 30, 40})},
                     [](const Exprs& t) { return layer_norm(t[0], t[1], t[2], -1, 0.5); });
  expect_close(y, reals({1, 4}, {9, 19, 30, 46}), 1e-14);
}

TEST(LayerNorm, normalises_the_axis_it_is_given_not_the_last) {
  // The row above as the first column, beside a constant one.
  const auto y = one({reals({4, 2}, {1, 5, 2, 5, 3, 5, 6, 5}), reals({4}, {1, 1, 1, 2})},
                     [](const Exprs& t) { return layer_norm(t[0], t[1], {}, 0, 0.5); });
  expect_close(y, reals({4, 2}, {-1, 0, -0.5, 0, 0, 0, 3, 0}), 1e-14);
}

TEST(RmsNorm, normalises_the_axis_it_is_given_not_the_last) {
  const auto y = one({reals({2, 2}, {1, 3, 7, 4}), reals({2}, {1, 2}), reals({2}, {0, 1})},
                     [](const Exprs& t) { return rms_norm(t[0], t[1], t[2], 0, 0); });
  const double a = 5, b = std::sqrt(12.5);  // roots of the mean squares of the columns
  expect_close(y, reals({2, 2}, {1 / a, 3 / b, 14 / a + 1, 8 / b + 1}), 1e-14);
}

TEST(RmsNorm, works_with_gamma_alone_and_with_nothing) {
  const auto y = evaluate({reals({2}, {3, 4}), reals({2}, {2, 10})}, [](const Exprs& t) {
    return Exprs{rms_norm(t[0], t[1], {}, -1, 0), rms_norm(t[0], {}, {}, -1, 0)};
  });
  const double r = 1 / std::sqrt(12.5);
  expect_close(y[0], reals({2}, {6 * r, 40 * r}), 1e-14);
  expect_close(y[1], reals({2}, {3 * r, 4 * r}), 1e-14);
}

TEST(LayerNorm2d, normalises_the_channels_at_each_place) {
  const auto y =
      one({reals({1, 4, 1, 2}, {1, 7, 2, 7, 3, 7, 6, 7}), reals({4}, {1, 1, 1, 1}), reals({4}, {0, 0, 0, 1})},
          [](const Exprs& t) { return layer_norm2d(t[0], t[1], t[2], 0.5); });
  expect_close(y, reals({1, 4, 1, 2}, {-1, 0, -0.5, 0, 0, 0, 2.5, 1}), 1e-14);
}

TEST(GroupNorm, takes_statistics_over_channels_and_places_of_a_group) {
  const auto y = one(
      {reals({1, 4, 2}, {1, 2, 3, 6, 11, 12, 13, 16}), reals({4}, {1, 1, 1, 2}), reals({4}, {0, 0, 5, 0})},
      [](const Exprs& t) { return group_norm(t[0], t[1], t[2], 2, 0.5); });
  expect_close(y, reals({1, 4, 2}, {-1, -0.5, 0, 1.5, 4, 4.5, 0, 3}), 1e-13);
}

// In f32 the square of 1e6 swallows a variance of 3.5; only a variance of differences survives.
TEST(GroupNorm, does_not_cancel_under_a_large_mean) {
  const Literal x = Literal::of<float>({1, 2, 2}, {1e6f + 1, 1e6f + 2, 1e6f + 3, 1e6f + 6});
  const auto y = one({x}, [](const Exprs& t) { return group_norm(t[0], {}, {}, 1, 0.5); });
  expect_close(y, Literal::of<float>({1, 2, 2}, {-1, -0.5, 0, 1.5}), 1e-6);
}

TEST(LayerNormBackward, is_orthogonal_to_constants_and_to_the_row) {
  const Literal x = reals({1, 4}, kRow), dy = reals({1, 4}, {1, 0, 0, 0});
  // r = 1/2, mean(g) = 1/4, mean(g hat) = -1/4
  expect_close(one({x, reals({4}, {1, 9, 9, 9}), dy},
                   [](const Exprs& t) { return layer_norm_backward_input(t[0], t[1], t[2], -1, 0.5); }),
               reals({1, 4}, {0.25, -0.1875, -0.125, 0.0625}), 1e-14);
  expect_close(
      one({x, dy}, [](const Exprs& t) { return layer_norm_backward_gamma(t[0], t[1], {4}, -1, 0.5); }),
      reals({4}, {-1, 0, 0, 0}), 1e-14);
}

// Mean square 3, g = (1, -2, 6), mean(g x) = 3: dx = r (g - x r^2 3) = r (g - x).
TEST(RmsNormBackward, has_the_square_of_the_inverse_root_inside) {
  const Literals in{reals({1, 3}, {1, 2, 2}), reals({3}, {1, 2, 3}), reals({3}, {0, 0, 0}),
                    reals({1, 3}, {1, -1, 2})};
  const double r = 1 / std::sqrt(3.0);
  const auto y = evaluate(in, [](const Exprs& t) {
    return Exprs{rms_norm_backward_input(t[0], t[1], t[2], t[3], -1, 0),
                 rms_norm_backward_gamma(t[0], t[1], t[2], t[3], -1, 0),
                 rms_norm_backward_beta(t[0], t[1], t[2], t[3], -1, 0)};
  });
  expect_close(y[0], reals({1, 3}, {0, -4 * r, 4 * r}), 1e-14);
  expect_close(y[1], reals({3}, {r, -2 * r, 4 * r}), 1e-14);
  expect_close(y[2], reals({3}, {1, -1, 2}), 1e-14);
}

TEST(GroupNormBackward, agrees_with_layer_norm_for_one_row_and_sums_per_channel) {
  const Literals in{reals({1, 2, 2}, kRow), reals({2}, {1, 9}), reals({2}, {0, 0}),
                    reals({1, 2, 2}, {1, 0, 0, 2})};
  const auto y = evaluate(in, [](const Exprs& t) {
    return Exprs{group_norm_backward_gamma(t[0], t[3], {2}, 1, 0.5),
                 group_norm_backward_beta(t[0], t[3], {2}, 1, 0.5),
                 group_norm_backward_input(t[0], t[1], t[2], t[3], 1, 0.5)};
  });
  expect_close(y[0], reals({2}, {-1, 3}), 1e-14);
  expect_close(y[1], reals({2}, {1, 2}), 1e-14);
  // g = (1, 0, 0, 18): mean 19/4, mean(g hat) = (27 - 1) / 4 = 6.5, r = 1/2
  expect_close(
      y[2],
      reals({1, 2, 2}, {0.5 * (1 - 4.75 + 6.5), 0.5 * (-4.75 + 3.25), 0.5 * -4.75, 0.5 * (18 - 4.75 - 9.75)}),
      1e-14);
}

TEST(ResidualNorm, returns_the_normalised_sum_and_the_sum) {
  const Literals in{reals({1, 4}, {1, 1, 1, 1}), reals({1, 4}, {0, 0, 1, 4}), reals({4}, {0, 1, 1, 1}),
                    reals({4}, {1, 1, 1, 2}), reals({4}, {5, 0, 0, 0})};
  const auto y = evaluate(in, [](const Exprs& t) {
    const auto [ln, sum] = fused_residual_ln(t[0], t[1], t[2], t[3], t[4], 0.5);
    const auto [rms, plain] = fused_residual_rms_norm(t[0], t[1], {}, t[3], t[4], 0);
    return Exprs{ln, sum, rms, plain};
  });
  expect_close(y[0], reals({1, 4}, {4, -0.5, 0, 3}), 1e-14);
  expect_close(y[1], reals({1, 4}, kRow), 0);
  const double r = 1 / std::sqrt(31.0 / 4);
  expect_close(y[2], reals({1, 4}, {5 + r, r, 2 * r, 10 * r}), 1e-14);
  expect_close(y[3], reals({1, 4}, {1, 1, 2, 5}), 0);
}

}  // namespace
}  // namespace rlx::ops
