#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/sort.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

constexpr float kInf = INFINITY;

Literal floats(Dims dims, const std::vector<float>& v) { return Literal::of<float>(std::move(dims), v); }
Literal ints(Dims dims, const std::vector<int32_t>& v) { return Literal::of<int32_t>(std::move(dims), v); }

TEST(Argmax, takes_the_first_of_equal_elements_along_any_axis) {
  const auto y = evaluate({floats({2, 3}, {1, 5, 5, 7, 5, 0})}, [](const Exprs& t) {
    return Exprs{argmax(t[0], 1), argmax(t[0], 0), argmin(t[0], -1, true),
                 argmax(t[0], 1, false, DType::i64)};
  });
  EXPECT_EQ(y[0], ints({2}, {1, 0}));
  EXPECT_EQ(y[1], ints({3}, {1, 0, 0}));
  EXPECT_EQ(y[2], ints({2, 1}, {0, 2}));
  EXPECT_EQ(y[3], Literal::of<int64_t>({2}, {1, 0}));
}

TEST(Argmax, the_first_nan_wins) {
  const auto y = evaluate({floats({4}, {1, NAN, 9, NAN})},
                          [](const Exprs& t) { return Exprs{argmax(t[0], 0), argmin(t[0], 0)}; });
  EXPECT_EQ(y[0], ints({}, {1}));
  EXPECT_EQ(y[1], ints({}, {1}));
}

TEST(Argmax, finds_minus_infinity_when_there_is_nothing_else) {
  const auto y = evaluate({floats({2}, {-kInf, -kInf})}, [](const Exprs& t) { return argmax(t[0], 0); });
  EXPECT_EQ(y[0], ints({}, {0}));
}

TEST(Argmax, tells_64_bit_integers_apart_that_are_one_double) {
  const int64_t big = int64_t(1) << 60;
  const auto y = evaluate({Literal::of<int64_t>({3}, {big, big + 1, big})},
                          [](const Exprs& t) { return argmax(t[0], 0); });
  EXPECT_EQ(y[0], ints({}, {1}));
}

TEST(Sort, is_stable_in_both_directions_and_puts_nan_on_top) {
  const auto x = floats({6}, {2, NAN, 1, 2, -kInf, 1});
  const auto up = evaluate({x}, [](const Exprs& t) { return sort(t[0], 0); });
  expect_close(up[0], floats({6}, {-kInf, 1, 1, 2, 2, NAN}), 0);
  EXPECT_EQ(up[1], ints({6}, {4, 2, 5, 0, 3, 1}));
  const auto down = evaluate({x}, [](const Exprs& t) { return sort(t[0], 0, true); });
  expect_close(down[0], floats({6}, {NAN, 2, 2, 1, 1, -kInf}), 0);
  EXPECT_EQ(down[1], ints({6}, {1, 0, 3, 2, 5, 4}));
}

TEST(Sort, along_the_first_axis_sorts_columns) {
  const auto y = evaluate({ints({3, 2}, {3, 1, 1, 2, 2, 0})},
                          [](const Exprs& t) { return Exprs{sort(t[0], 0)[0], argsort(t[0], 0)}; });
  EXPECT_EQ(y[0], ints({3, 2}, {1, 0, 2, 1, 3, 2}));
  EXPECT_EQ(y[1], ints({3, 2}, {1, 2, 2, 0, 0, 1}));
}

// Repeated argmax with -inf masking would return index 0 twice here.
TEST(TopK, is_well_defined_with_minus_infinity_and_nan) {
  const auto y = evaluate({floats({2, 3}, {-kInf, -kInf, -kInf, 1, NAN, 2})},
                          [](const Exprs& t) { return top_k(t[0], 3); });
  expect_close(y[0], floats({2, 3}, {-kInf, -kInf, -kInf, NAN, 2, 1}), 0);
  EXPECT_EQ(y[1], ints({2, 3}, {0, 1, 2, 1, 2, 0}));
}

TEST(TopK, returns_values_and_breaks_ties_by_index) {
  const auto y = evaluate({floats({5}, {1, 7, 3, 7, 7})}, [](const Exprs& t) { return top_k(t[0], 2); });
  EXPECT_EQ(y[0], floats({2}, {7, 7}));
  EXPECT_EQ(y[1], ints({2}, {1, 3}));
}

TEST(Cummax, remembers_where_the_maximum_was_met) {
  const auto x = floats({6}, {1, 3, 3, 2, NAN, 9});
  const auto y = evaluate({x}, [](const Exprs& t) { return cummax(t[0], 0); });
  expect_close(y[0], floats({6}, {1, 3, 3, 3, NAN, NAN}), 0);
  EXPECT_EQ(y[1], ints({6}, {0, 1, 1, 1, 4, 4}));
  const auto back = evaluate({ints({4}, {2, 1, 3, 3})}, [](const Exprs& t) { return cummin(t[0], 0, true); });
  EXPECT_EQ(back[0], ints({4}, {1, 1, 3, 3}));
  EXPECT_EQ(back[1], ints({4}, {1, 1, 3, 3}));
}

TEST(AnyAll, of_nothing_are_false_and_true) {
  const auto y = evaluate(
      {Literal::of<bool>({2, 2}, {true, false, true, true}), Literal::zeros(Shape(DType::bool_, {1, 0}))},
      [](const Exprs& t) {
        return Exprs{any(t[0], {0}), all(t[0], {0}), all(t[0], {}), any(t[1], {1}), all(t[1], {1})};
      });
  EXPECT_EQ(y[0], Literal::of<bool>({2}, {true, true}));
  EXPECT_EQ(y[1], Literal::of<bool>({2}, {true, false}));
  EXPECT_EQ(y[2], Literal::of<bool>({}, {false}));
  EXPECT_EQ(y[3], Literal::of<bool>({1}, {false}));
  EXPECT_EQ(y[4], Literal::of<bool>({1}, {true}));
}

TEST(CumsumBackward, sums_from_the_other_end) {
  const auto y = evaluate({floats({3, 1}, {1, 2, 4})}, [](const Exprs& t) {
    return Exprs{cumsum_backward(t[0], 0), cumsum_backward(t[0], 0, true)};
  });
  EXPECT_EQ(y[0], floats({3, 1}, {7, 6, 4}));
  EXPECT_EQ(y[1], floats({3, 1}, {6, 4, 0}));
}

}  // namespace
}  // namespace rlx::ops
