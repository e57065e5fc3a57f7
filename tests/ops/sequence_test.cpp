#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "rlx/ops/sequence/gated_delta_net.h"
#include "rlx/ops/sequence/selective_scan.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
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
                          [](const Exprs& t) { return selective_scan(t[0], t[1], t[2], t[3], t[4], 1); });
  expect_close(y[0], reals({1, 2, 1}, {1, 60 + 10 * std::exp(-1)}), 1e-12);
}

TEST(SelectiveScan, each_batch_row_starts_from_zero) {
  const auto y = evaluate({reals({2, 1, 1}, {1, 2}), reals({2, 1, 1}, {1, 1}), reals({1, 2}, {-1, -2}),
                           reals({2, 1, 2}, {2, 3, 4, 5}), reals({2, 1, 2}, {1, 1, 1, 1})},
                          [](const Exprs& t) { return selective_scan(t[0], t[1], t[2], t[3], t[4], 2); });
  expect_close(y[0], reals({2, 1, 1}, {5, 18}), 1e-12);
}

// One lane: S1 = k v beta = 2 3 0.5 = 3, y1 = 3 q. Then S = e^g 3 = 1.5; d = 1 (5 - 1.5 4) = -1; S2 = 1.5
// - 4.
TEST(GatedDeltaNet, fades_then_corrects_then_reads) {
  const Dims lanes{1, 2, 1, 1}, gates{1, 2, 1};
  const Literals in{reals(lanes, {10, 100}), reals(lanes, {2, 4}), reals(lanes, {3, 5}),
                    reals(gates, {7, std::log(0.5)}), reals(gates, {0.5, 1})};
  const auto y = evaluate(in, [](const Exprs& t) {
    const auto r = gated_delta_net(t[0], t[1], t[2], t[3], t[4], 1);
    return Exprs{r.output, r.state};
  });
  expect_close(y[0], reals(lanes, {30, -250}), 1e-12);
  expect_close(y[1], reals({1, 1, 1, 1}, {-2.5}), 1e-12);
}

TEST(GatedDeltaNet, divides_by_the_root_of_the_state_size) {
  const Dims lanes{1, 1, 1, 4}, gates{1, 1, 1};
  const auto y =
      evaluate({reals(lanes, {1, 0, 0, 0}), reals(lanes, {1, 0, 0, 0}), reals(lanes, {2, 4, 6, 8}),
                reals(gates, {0}), reals(gates, {1})},
               [](const Exprs& t) { return gated_delta_net(t[0], t[1], t[2], t[3], t[4], 4).output; });
  expect_close(y[0], reals(lanes, {1, 2, 3, 4}), 1e-12);
}

TEST(GatedDeltaNet, carrying_the_state_in_two_halves_equals_one_run_and_leaves_the_operand_alone) {
  const Literal q = ir::sample_literal("f64[2,5,3,4]", 1), k = ir::sample_literal("f64[2,5,3,4]", 2),
                v = ir::sample_literal("f64[2,5,3,4]", 3), g = ir::sample_literal("f64[2,5,3]", 4),
                beta = ir::sample_literal("f64[2,5,3] unit", 5);
  const auto y = evaluate({q, k, v, g, beta}, [](const Exprs& t) {
    const auto whole = gated_delta_net(t[0], t[1], t[2], t[3], t[4], 4);
    Exprs first, second;
    for (const Expr& x : t) first.push_back(narrow(x, 1, 0, 2)), second.push_back(narrow(x, 1, 2, 3));
    const auto a = gated_delta_net(first[0], first[1], first[2], first[3], first[4], 4);
    const auto b = gated_delta_net_carry(second[0], second[1], second[2], second[3], second[4], a.state, 4);
    return Exprs{whole.output, whole.state, concat({a.output, b.output}, 1), b.state, a.state};
  });
  expect_close(y[2], y[0], 1e-12);
  expect_close(y[3], y[1], 1e-12);
  EXPECT_FALSE(y[4] == y[3]);
}

}  // namespace
}  // namespace rlx::ops
