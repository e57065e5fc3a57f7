#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "rlx/train/schedule.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace train;

std::vector<double> first(const Schedule& s, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(s(i));
  return out;
}

void expect_rates(const Schedule& s, const std::vector<double>& want) {
  const auto got = first(s, int(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-12 * std::fabs(want[i]) + 1e-18) << i;
}

TEST(Schedules, follow_their_formulas) {
  expect_rates(constant(0.3), {0.3, 0.3});
  expect_rates(linear(1, 0.2, 4), {1, 0.8, 0.6, 0.4, 0.2, 0.2});
  expect_rates(cosine(2, 4, 1), {2, 1.5 + std::cos(std::numbers::pi / 4) / 2, 1.5,
                                 1.5 - std::cos(std::numbers::pi / 4) / 2, 1, 1});
  expect_rates(polynomial(1, 4, 2), {1, 0.5625, 0.25, 0.0625, 0, 0});
  expect_rates(step_decay(1, 2, 0.5), {1, 1, 0.5, 0.5, 0.25});
  expect_rates(multi_step(1, {1, 3}, 0.1), {1, 0.1, 0.1, 0.01});
  expect_rates(exponential(1, 0.9), {1, 0.9, 0.81});
  expect_rates(inverse_sqrt(1, 4), {0.25, 0.5, 0.75, 1, std::sqrt(4.0 / 5)});
}

TEST(Schedules, begin_with_a_rise_where_asked) {
  expect_rates(warm_up(4, linear(1, 0, 2)), {0.25, 0.5, 0.75, 1, 1, 0.5, 0});
  expect_rates(warm_up(0, constant(2)), {2});
  expect_rates(sequence({{2, constant(1)}, {1, constant(2)}, {1, linear(3, 4, 2)}}), {1, 1, 2, 3, 3.5, 4});
}

// Borders at 0.3 * 10 - 1 = 2 and at 9.
TEST(Schedules, go_up_and_down_in_one_cycle) {
  const auto got = first(one_cycle(1, 10), 11);
  EXPECT_NEAR(got[0], 1.0 / 25, 1e-15);
  EXPECT_NEAR(got[1], (1.0 / 25 + 1) / 2, 1e-15);
  EXPECT_NEAR(got[2], 1, 1e-15);
  EXPECT_NEAR(got[9], 1.0 / 25 / 1e4, 1e-15);
  EXPECT_EQ(got[10], got[9]);
  EXPECT_NEAR(first(one_cycle(1, 10, {.along_lines = true}), 4)[3], 1 + (4e-6 - 1) / 7, 1e-15);
}

TEST(Schedules, are_found_by_name) {
  expect_rates(schedule_of({.name = "cosine", .rate = 0.006, .steps = 50, .warmup = 8, .last = 0.0006}),
               {0.006 / 8, 0.006 / 4});
  EXPECT_NEAR(schedule_of({.name = "cosine", .rate = 0.006, .steps = 50, .warmup = 8, .last = 0.0006})(29),
              0.0006 + 0.5 * 0.0054 * (1 + std::cos(std::numbers::pi / 2)), 1e-15);
  for (const std::string& name : schedule_names()) {
    const Schedule s = schedule_of(
        {.name = name, .rate = 1, .steps = 10, .warmup = name == "one_cycle" ? 0 : 2, .every = 3});
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(std::isfinite(s(i))) << name;
  }
  EXPECT_EQ(test::message_of([] { schedule_of({.name = "cosin", .steps = 4}); }),
            "schedule: unknown schedule 'cosin'; did you mean 'cosine'; known: constant, linear, cosine, "
            "polynomial, step, exponential, inverse_sqrt, one_cycle");
  EXPECT_EQ(test::message_of([] { schedule_of({.name = "linear", .steps = 4, .warmup = 4}); }),
            "schedule: a warm-up of 4 steps leaves none of 4 for linear");
  EXPECT_EQ(test::message_of([] { schedule_of({.name = "inverse_sqrt", .steps = 4}); }),
            "schedule: inverse_sqrt needs a warm-up: its rate rises over these steps and falls from there");
  EXPECT_EQ(test::message_of([] { schedule_of({.rate = -1}); }),
            "schedule: a rate of -1.0; at least 0 and finite is needed");
  EXPECT_EQ(test::message_of([] { schedule_of({.name = "exponential", .factor = -0.5}); }),
            "schedule: a factor of -0.5; at least 0 and finite is needed");
  EXPECT_EQ(test::message_of([] { schedule_of({.warmup = -1}); }),
            "schedule: a warm-up of -1 steps; at least 0 is needed");
  EXPECT_NE(test::message_of([] { schedule_of({.name = "polynomial", .steps = 4, .power = NAN}); }),
            "no error");
}

}  // namespace
}  // namespace rlx
