#include <gtest/gtest.h>

#include "rlx/ops/shape/dynamic_slice.h"
#include "rlx/ops/shape/flip.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/slice.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate;
using Ints = std::vector<int32_t>;

const Literal kMatrix = Literal::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(Pad, puts_the_value_around_the_tensor) {
  const auto y = evaluate({kMatrix}, [](const Exprs& t) { return pad(t[0], {1, 0}, {0, 2}, 9); });
  EXPECT_EQ(y[0], Literal::of<int32_t>({3, 5}, {9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 4, 5, 6, 9, 9}));
}

TEST(Pad, takes_symbolic_sizes) {
  Graph g;
  const Dim n = Dim::seq();
  const Expr x{&g, g.input("x", Shape(DType::f32, {n}))};
  const Expr y = pad(x, {n}, {1}, 5);
  EXPECT_EQ(cat(y.shape()), "f32[2*seq+1]");
  g.set_outputs({y});
  const Literals leaves{Literal::of<float>({2}, {1, 2})};
  EXPECT_EQ(interpret(g, leaves)[0], Literal::of<float>({5}, {5, 5, 1, 2, 5}));
}

TEST(Flip, reverses_the_listed_axes) {
  const auto flipped = [](std::vector<int> axes) {
    return evaluate({kMatrix}, [&](const Exprs& t) { return flip(t[0], axes); })[0];
  };
  EXPECT_EQ(flipped({1}), Literal::of<int32_t>({2, 3}, {3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(flipped({0}), Literal::of<int32_t>({2, 3}, {4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(flipped({}), Literal::of<int32_t>({2, 3}, {6, 5, 4, 3, 2, 1}));
}

TEST(Slice, steps_through_the_box) {
  const auto y = evaluate({kMatrix}, [](const Exprs& t) { return slice(t[0], {0, 0}, {2, 3}, {1, 2}); });
  EXPECT_EQ(y[0], Literal::of<int32_t>({2, 2}, {1, 3, 4, 6}));
  const auto part = evaluate({kMatrix}, [](const Exprs& t) { return slice(t[0], {1, 1}, {2, 3}); });
  EXPECT_EQ(part[0], Literal::of<int32_t>({1, 2}, {5, 6}));
}

Literal sliced_at(Ints starts) {
  return evaluate({kMatrix, Literal::of<int32_t>({2}, starts)},
                  [](const Exprs& t) { return dynamic_slice(t[0], t[1], {1, 2}); })[0];
}

TEST(DynamicSlice, limits_the_start_so_that_the_box_lies_inside) {
  EXPECT_EQ(sliced_at({1, 1}), Literal::of<int32_t>({1, 2}, {5, 6}));
  EXPECT_EQ(sliced_at({7, 2}), Literal::of<int32_t>({1, 2}, {5, 6}));
  EXPECT_EQ(sliced_at({-4, -1}), Literal::of<int32_t>({1, 2}, {1, 2}));
}

TEST(DynamicSlice, takes_whole_numbers_in_floats_as_starts) {
  const auto y = evaluate({kMatrix, Literal::of<float>({2}, {1, 0})},
                          [](const Exprs& t) { return dynamic_slice(t[0], t[1], {1, 2}); });
  EXPECT_EQ(y[0], Literal::of<int32_t>({1, 2}, {4, 5}));
}

TEST(DynamicUpdateSlice, replaces_the_box_only) {
  const auto y = evaluate({kMatrix, Literal::of<int32_t>({1, 2}, {8, 9}), Literal::of<int64_t>({2}, {1, 9})},
                          [](const Exprs& t) { return dynamic_update_slice(t[0], t[1], t[2]); });
  EXPECT_EQ(y[0], Literal::of<int32_t>({2, 3}, {1, 2, 3, 4, 8, 9}));
}

TEST(Iota, counts_along_one_axis) {
  const auto y = evaluate({kMatrix}, [](const Exprs& t) {
    return Exprs{iota(*t[0].graph, Shape(DType::i32, {2, 3}), 1),
                 iota(*t[0].graph, Shape(DType::f32, {2, 2}), 0)};
  });
  EXPECT_EQ(y[0], Literal::of<int32_t>({2, 3}, {0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(y[1], Literal::of<float>({2, 2}, {0, 0, 1, 1}));
}

TEST(OneHot, is_zero_for_indices_out_of_range) {
  const auto y = evaluate({Literal::of<int32_t>({3}, {1, -1, 2})}, [](const Exprs& t) {
    return Exprs{one_hot(t[0], 2), one_hot(t[0], 3, 0, DType::i32)};
  });
  EXPECT_EQ(y[0], Literal::of<float>({3, 2}, {0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(y[1], Literal::of<int32_t>({3, 3}, {0, 0, 0, 1, 0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace rlx::ops
