#include "rlx/ops/attention/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "rlx/ops/shape/transpose.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& values) { return Literal::of<double>(dims, values); }

// Row 0 does nothing; row 1 turns pair 0 by the angle of a 3-4-5 triangle.
const Literal kCos = reals({2, 2}, {1, 1, 0.6, 1}), kSin = reals({2, 2}, {0, 0, 0.8, 0});
const Literal kTwo = reals({2, 4}, {1, 2, 3, 4, 1, 2, 3, 4});

TEST(Rope, pairs_lanes_half_a_head_apart_and_takes_the_row_of_the_position) {
  const auto y = evaluate({kTwo, kCos, kSin}, [](const Exprs& t) { return rope(t[0], t[1], t[2], 4); });
  expect_close(y[0], reals({2, 4}, {1, 2, 3, 4, -1.8, 2, 2.6, 4}), 1e-12);
}

TEST(Rope, pairs_neighbours_when_interleaved) {
  const auto y = evaluate({kTwo, kCos, kSin}, [](const Exprs& t) {
    return rope_with(t[0], t[1], t[2], {}, {.head_dim = 4, .interleaved = true});
  });
  expect_close(y[0], reals({2, 4}, {1, 2, 3, 4, -1, 2, 3, 4}), 1e-12);
}

TEST(Rope, turns_the_first_lanes_only_while_rows_keep_half_a_head) {
  const auto y = evaluate({kTwo, kCos, kSin}, [](const Exprs& t) { return rope_n(t[0], t[1], t[2], 4, 2); });
  expect_close(y[0], reals({2, 4}, {1, 2, 3, 4, -1, 2, 3, 4}), 1e-12);
}

TEST(Rope, takes_positions_per_batch_row) {
  const auto y =
      evaluate({reals({2, 1, 4}, {1, 2, 3, 4, 1, 2, 3, 4}), kCos, kSin, Literal::of<int64_t>({2, 1}, {1, 0})},
               [](const Exprs& t) { return rope_with(t[0], t[1], t[2], t[3], {.head_dim = 4}); });
  expect_close(y[0], reals({2, 1, 4}, {-1.8, 2, 2.6, 4, 1, 2, 3, 4}), 1e-12);
}

TEST(Rope, takes_whole_floats_as_positions) {
  const auto y = evaluate({reals({1, 4}, {1, 2, 3, 4}), kCos, kSin, Literal::of<float>({1}, {1})},
                          [](const Exprs& t) { return rope_with(t[0], t[1], t[2], t[3], {.head_dim = 4}); });
  expect_close(y[0], reals({1, 4}, {-1.8, 2, 2.6, 4}), 1e-12);
}

TEST(Rope, a_position_without_a_row_is_an_error) {
  EXPECT_EQ(test::message_of([] {
              evaluate({reals({1, 4}, {1, 2, 3, 4}), kCos, kSin, Literal::of<int32_t>({1}, {2})},
                       [](const Exprs& t) { return rope_with(t[0], t[1], t[2], t[3], {.head_dim = 4}); });
            }),
            "rope: position 2 is out of range; cos: f64[2,2] has 2 rows");
}

TEST(Rope, understands_heads_before_the_sequence) {
  const Literal x = ir::sample_literal("f64[2,2,3,4]", 1), cos = ir::sample_literal("f64[2,2]", 2),
                sin = ir::sample_literal("f64[2,2]", 3);
  const auto y = evaluate({x, cos, sin}, [](const Exprs& t) {
    const Expr seq_first = rope_with(t[0], t[1], t[2], {}, {.head_dim = 4, .layout = HeadLayout::bshd});
    const Expr heads_first =
        rope_with(transpose(t[0], {0, 2, 1, 3}), t[1], t[2], {}, {.head_dim = 4, .layout = HeadLayout::bhsd});
    return Exprs{seq_first, transpose(heads_first, {0, 2, 1, 3})};
  });
  expect_close(y[1], y[0], 0);
  EXPECT_FALSE(y[0] == x);
}

TEST(Rope, backward_turns_back) {
  const auto y = evaluate({kTwo, kCos, kSin}, [](const Exprs& t) {
    return rope_backward(rope(t[0], t[1], t[2], 4), t[1], t[2], 4, 4);
  });
  expect_close(y[0], kTwo, 1e-12);
}

TEST(AxialRope2d, turns_the_first_half_by_column_and_the_second_by_row) {
  const double c = std::cos(1), s = std::sin(1);
  const std::vector<double> lanes{1, 0, 1, 0};
  std::vector<double> x;
  for (int token = 0; token < 4; ++token) x.insert(x.end(), lanes.begin(), lanes.end());
  const auto y = evaluate({reals({1, 4, 4}, x)}, [](const Exprs& t) {
    return Exprs{axial_rope2d(t[0], 2, 2, 4, 1, 100), axial_rope2d(t[0], 2, 1, 4, 1, 100, 2)};
  });
  expect_close(y[0], reals({1, 4, 4}, {1, 0, 1, 0, c, s, 1, 0, 1, 0, c, s, c, s, c, s}), 1e-12);
  expect_close(y[1], reals({1, 4, 4}, {1, 0, 1, 0, 1, 0, 1, 0, c, s, 1, 0, c, s, 1, 0}), 1e-12);
}

TEST(AxialRope2d, falls_in_frequency_by_theta) {
  std::vector<double> x(16, 0);
  x[8] = x[10] = 1;  // token 1, lanes 0 and 2
  const auto y =
      evaluate({reals({1, 2, 8}, x)}, [](const Exprs& t) { return axial_rope2d(t[0], 2, 1, 8, 1, 100); });
  EXPECT_NEAR(y[0].real_at(8), std::cos(1), 1e-12);
  EXPECT_NEAR(y[0].real_at(10), std::cos(0.1), 1e-12);
}

}  // namespace
}  // namespace rlx::ops
