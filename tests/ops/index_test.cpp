#include <gtest/gtest.h>

#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/index/take_along.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate;

Literal ints(Dims dims, const std::vector<int32_t>& v) { return Literal::of<int32_t>(std::move(dims), v); }

Literal counting(Dims dims) {
  std::vector<int32_t> v(size_t(product(dims).value()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = int32_t(i);
  return ints(std::move(dims), v);
}

// table[2,3,2] holds 0..11.
TEST(Gather, along_a_later_axis_keeps_the_axes_before_it) {
  const auto y = evaluate({counting({2, 3, 2}), ints({2}, {2, 0})},
                          [](const Exprs& t) { return gather(t[0], t[1], 1); });
  EXPECT_EQ(y[0], ints({2, 2, 2}, {4, 5, 0, 1, 10, 11, 6, 7}));
}

TEST(Gather, index_axes_take_the_place_of_the_axis) {
  const auto y = evaluate({counting({3, 2}), ints({2, 2}, {2, 0, 0, 1})},
                          [](const Exprs& t) { return gather(t[0], t[1], 0); });
  EXPECT_EQ(y[0], ints({2, 2, 2}, {4, 5, 0, 1, 0, 1, 2, 3}));
}

TEST(Gather, keeps_integer_indices_exact_above_two_to_the_24) {
  // f32 would round 16777217 to 16777216 and pick the neighbour.
  Literal table = Literal::zeros(Shape(DType::u8, {16777218}));
  table.mutable_data<uint8_t>()[16777217] = 7;
  const auto y =
      evaluate({table, ints({1}, {16777217})}, [](const Exprs& t) { return gather(t[0], t[1], 0); });
  EXPECT_EQ(y[0], Literal::of<uint8_t>({1}, {7}));
}

TEST(Gather, takes_whole_numbers_in_floats) {
  const auto y = evaluate({counting({3}), Literal::of<float>({2}, {2, 1})},
                          [](const Exprs& t) { return gather(t[0], t[1], 0); });
  EXPECT_EQ(y[0], ints({2}, {2, 1}));
}

TEST(Gather, out_of_range_is_an_error_unless_clamping_is_asked_for) {
  const auto run = [](IndexMode mode) {
    return evaluate({counting({3}), ints({3}, {-1, 1, 5})},
                    [mode](const Exprs& t) { return gather(t[0], t[1], 0, mode); })[0];
  };
  EXPECT_EQ(test::message_of([&] { run(IndexMode::error); }),
            "gather: element 0 of indices is -1; it must be at least 0 and below 3");
  EXPECT_EQ(run(IndexMode::clamp), ints({3}, {0, 1, 2}));
}

// Two batches with different indices: the old kernel worked for one only.
TEST(BatchedGather, has_its_own_indices_for_each_batch) {
  const auto y = evaluate({counting({2, 3, 2}), ints({2, 1}, {2, 0})},
                          [](const Exprs& t) { return batched_gather(t[0], t[1], 1, 1); });
  EXPECT_EQ(y[0], ints({2, 1, 2}, {4, 5, 6, 7}));
}

TEST(BatchedGather, keeps_axes_between_batch_and_axis) {
  const auto y = evaluate({counting({2, 2, 3}), ints({2, 2}, {0, 2, 1, 1})},
                          [](const Exprs& t) { return batched_gather(t[0], t[1], 2, 1); });
  EXPECT_EQ(y[0], ints({2, 2, 2}, {0, 2, 3, 5, 7, 7, 10, 10}));
}

TEST(TakeAlong, picks_one_element_for_each_index) {
  const auto y = evaluate({counting({2, 3}), ints({2, 2}, {2, 0, 1, 1})}, [](const Exprs& t) {
    return Exprs{take_along(t[0], t[1], 1), put_along(take_along(t[0], t[1], 1), t[1], 1, 3)};
  });
  EXPECT_EQ(y[0], ints({2, 2}, {2, 0, 4, 4}));
  EXPECT_EQ(y[1], ints({2, 3}, {0, 0, 2, 0, 8, 0}));
}

Literal scattered(ScatterKind kind) {
  return evaluate({ints({3}, {10, 20, 30}), ints({4}, {0, 2, 0, 2}), ints({4}, {5, 60, 1, 40})},
                  [kind](const Exprs& t) { return scatter(t[0], t[1], t[2], kind); })[0];
}

TEST(Scatter, combines_duplicates_in_order) {
  EXPECT_EQ(scattered(ScatterKind::set), ints({3}, {1, 20, 40}));
  EXPECT_EQ(scattered(ScatterKind::add), ints({3}, {16, 20, 130}));
  EXPECT_EQ(scattered(ScatterKind::max), ints({3}, {10, 20, 60}));
  EXPECT_EQ(scattered(ScatterKind::min), ints({3}, {1, 20, 30}));
}

TEST(Scatter, runs_batches_side_by_side) {
  const auto y = evaluate({counting({2, 2, 2}), ints({2, 1}, {1, 0}), ints({2, 1, 2}, {70, 71, 80, 81})},
                          [](const Exprs& t) { return scatter(t[0], t[1], t[2], ScatterKind::set, 1); });
  EXPECT_EQ(y[0], ints({2, 2, 2}, {0, 1, 70, 71, 80, 81, 6, 7}));
}

TEST(ScatterAdd, sums_rows_with_the_same_index) {
  const auto y = evaluate({ints({3, 2}, {1, 2, 3, 4, 5, 6}), ints({3}, {2, 0, 2})},
                          [](const Exprs& t) { return scatter_add(t[0], t[1], 4); });
  EXPECT_EQ(y[0], ints({4, 2}, {3, 4, 0, 0, 6, 8, 0, 0}));
}

TEST(GatherBackward, adds_up_what_each_row_of_the_table_gave) {
  const auto y = evaluate({Literal::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}), ints({3}, {1, 1, 0})},
                          [](const Exprs& t) { return gather_backward(t[0], t[1], {2, 4}, 1); });
  EXPECT_EQ(y[0], Literal::of<double>({2, 4}, {3, 3, 0, 0, 6, 9, 0, 0}));
}

}  // namespace
}  // namespace rlx::ops
