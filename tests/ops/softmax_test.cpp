#include "rlx/ops/reduce/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/reduce/variance.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

constexpr double kInf = INFINITY;

Literal reals(Dims dims, const std::vector<double>& v) { return Literal::of<double>(std::move(dims), v); }

// Columns (0, ln 3) and (ln 2, 0): not what summing runs of neighbours would give.
TEST(Softmax, along_the_first_axis_normalises_columns) {
  const double l2 = std::log(2), l3 = std::log(3);
  const auto y = evaluate({reals({2, 2}, {0, l2, l3, 0})},
                          [](const Exprs& t) { return Exprs{softmax(t[0], 0), log_softmax(t[0], 0)}; });
  expect_close(y[0], reals({2, 2}, {0.25, 2.0 / 3, 0.75, 1.0 / 3}), 1e-15);
  expect_close(y[1], reals({2, 2}, {-2 * l2, l2 - l3, l3 - 2 * l2, -l3}), 1e-15);
}

TEST(Softmax, does_not_overflow_and_gives_masked_entries_zero) {
  const auto y = evaluate({reals({3}, {1000, -kInf, 1000})},
                          [](const Exprs& t) { return Exprs{softmax(t[0]), log_softmax(t[0])}; });
  expect_close(y[0], reals({3}, {0.5, 0, 0.5}), 0);
  expect_close(y[1], reals({3}, {-std::log(2), -kInf, -std::log(2)}), 1e-15);
}

TEST(Logsumexp, is_exact_for_large_infinite_and_no_elements) {
  const auto y = evaluate({reals({4, 2}, {1000, 1000, -kInf, -kInf, -kInf, 3, kInf, 0}), reals({2, 0}, {})},
                          [](const Exprs& t) { return Exprs{logsumexp(t[0], {1}), logsumexp(t[1], {1})}; });
  expect_close(y[0], reals({4}, {1000 + std::log(2), -kInf, 3, kInf}), 1e-15);
  expect_close(y[1], reals({2}, {-kInf, -kInf}), 0);
}

TEST(Logsumexp, over_several_axes_keeps_them_when_asked) {
  const auto y = evaluate({reals({2, 1, 2}, {0, 0, 0, 0})}, [](const Exprs& t) {
    return Exprs{logsumexp(t[0], {0, 2}, true), logsumexp(t[0], {})};
  });
  expect_close(y[0], reals({1, 1, 1}, {std::log(4)}), 1e-15);
  expect_close(y[1], reals({}, {std::log(4)}), 1e-15);
}

TEST(Variance, divides_by_the_count_less_the_correction) {
  const auto y = evaluate({reals({2, 4}, {2, 4, 4, 6, 1, 1, 1, 1})}, [](const Exprs& t) {
    return Exprs{variance(t[0], {1}), variance(t[0], {-1}, true, 1), variance(t[0], {}),
                 variance(t[0], {1}, false, 9)};
  });
  expect_close(y[0], reals({2}, {2, 0}), 1e-15);
  expect_close(y[1], reals({2, 1}, {8.0 / 3, 0}), 1e-15);
  expect_close(y[2], reals({}, {3.25}), 1e-15);
  expect_close(y[3], reals({2}, {kInf, NAN}), 0);
}

TEST(Variance, does_not_cancel_far_from_zero) {
  const auto y = evaluate({Literal::of<float>({3}, {1e6f, 1e6f + 1, 1e6f + 2})},
                          [](const Exprs& t) { return variance(t[0], {0}); });
  expect_close(y[0], Literal::of<float>({}, {2.0f / 3}), 1e-7);
}

TEST(Variance, counts_a_symbolic_size) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[seq]"))};
  g.set_outputs({variance(x, {0}, false, 1), softmax(x, 0), logsumexp(x, {0})});
  const Literals leaves{reals({3}, {0, 0, 3})};
  const auto y = interpret(g, leaves);
  expect_close(y[0], reals({}, {3}), 1e-15);
}

}  // namespace
}  // namespace rlx::ops
