#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/sequence/selective_scan.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& values) { return Literal::of<double>(dims, values); }

// S1 = 0.5 2 1 = 1, y1 = 1; S2 = e^-1 S1 + 1 3 2, y2 = 10 S2.
TEST(SelectiveScan, decays_by_the_exponential_of_delta_a) {
  const auto y = evaluate({reals({1, 2, 1}, {1, 2}), reals({1, 2, 1}, {0.5, 1}), reals({1, 1}, {-1}),
                           reals({1, 2, 1}, {2, 3}), reals({1, 2, 1}, {1, 10})},
                          [](const Tensors& t) { return selective_scan(t[0], t[1], t[2], t[3], t[4], 1); });
  expect_close(y[0], reals({1, 2, 1}, {1, 60 + 10 * std::exp(-1)}), 1e-12);
}

TEST(SelectiveScan, each_batch_row_starts_from_zero) {
  const auto y = evaluate({reals({2, 1, 1}, {1, 2}), reals({2, 1, 1}, {1, 1}), reals({1, 2}, {-1, -2}),
                           reals({2, 1, 2}, {2, 3, 4, 5}), reals({2, 1, 2}, {1, 1, 1, 1})},
                          [](const Tensors& t) { return selective_scan(t[0], t[1], t[2], t[3], t[4], 2); });
  expect_close(y[0], reals({2, 1, 1}, {5, 18}), 1e-12);
}

}  // namespace
}  // namespace rlx::ops
