#include "rlx/ops/elementwise/binary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

template <class T>
Literal vec(const std::vector<T>& v) {
  return Literal::of<T>({int64_t(v.size())}, v);
}

template <class F>
Literal of_two(const Literal& a, const Literal& b, F f) {
  return evaluate({a, b}, [f](const Exprs& t) { return f(t[0], t[1]); })[0];
}

TEST(Clamp, limits_to_the_bounds_and_keeps_nan) {
  const auto y = evaluate({vec<float>({-3, -1, 0.25f, 2, NAN, INFINITY})},
                          [](const Exprs& t) { return clamp(t[0], -1, 1.5); });
  expect_close(y[0], vec<float>({-1, -1, 0.25f, 1.5f, NAN, 1.5f}), 0);
}

TEST(Clamp, saturates_bounds_beyond_the_integer_type) {
  const auto y = evaluate({vec<uint8_t>({0, 7, 255})}, [](const Exprs& t) { return clamp(t[0], -5, 1e9); });
  EXPECT_EQ(y[0], vec<uint8_t>({0, 7, 255}));
}

TEST(Rem, has_the_sign_of_the_dividend) {
  EXPECT_EQ(of_two(vec<int32_t>({7, -7, 7, -7}), vec<int32_t>({3, 3, -3, -3}), rem),
            vec<int32_t>({1, -1, 1, -1}));
  expect_close(of_two(vec<double>({5.5, -5.5, 5.5}), vec<double>({2, 2, -2}), rem),
               vec<double>({1.5, -1.5, 1.5}), 0);
}

TEST(Rem, by_zero_is_zero_for_integers_and_nan_for_floats) {
  EXPECT_EQ(of_two(vec<int32_t>({5, INT32_MIN}), vec<int32_t>({0, -1}), rem), vec<int32_t>({0, 0}));
  expect_close(of_two(vec<double>({5}), vec<double>({0}), rem), vec<double>({NAN}), 0);
}

TEST(Logical, follows_the_truth_tables) {
  const auto a = vec<bool>({false, false, true, true}), b = vec<bool>({false, true, false, true});
  EXPECT_EQ(of_two(a, b, logical_and), vec<bool>({false, false, false, true}));
  EXPECT_EQ(of_two(a, b, logical_or), vec<bool>({false, true, true, true}));
  EXPECT_EQ(of_two(a, b, logical_xor), vec<bool>({false, true, true, false}));
  EXPECT_EQ(evaluate({a}, [](const Exprs& t) { return logical_not(t[0]); })[0],
            vec<bool>({true, true, false, false}));
}

TEST(Bitwise, works_on_every_bit_of_the_type) {
  const auto a = vec<uint8_t>({0b1100, 0xff}), b = vec<uint8_t>({0b1010, 0x0f});
  EXPECT_EQ(of_two(a, b, bitwise_and), vec<uint8_t>({0b1000, 0x0f}));
  EXPECT_EQ(of_two(a, b, bitwise_or), vec<uint8_t>({0b1110, 0xff}));
  EXPECT_EQ(of_two(a, b, bitwise_xor), vec<uint8_t>({0b0110, 0xf0}));
  const auto inverted = [](const Exprs& t) { return bitwise_not(t[0]); };
  EXPECT_EQ(evaluate({a}, inverted)[0], vec<uint8_t>({0xf3, 0}));
  EXPECT_EQ(evaluate({vec<int32_t>({0, 5})}, inverted)[0], vec<int32_t>({-1, -6}));
  EXPECT_EQ(evaluate({vec<bool>({true, false})}, inverted)[0], vec<bool>({false, true}));
}

TEST(Shift, drops_what_leaves_the_type_and_is_defined_for_every_amount) {
  EXPECT_EQ(of_two(vec<uint8_t>({0x81, 1, 1}), vec<uint8_t>({1, 7, 8}), shift_left),
            vec<uint8_t>({2, 128, 0}));
  EXPECT_EQ(of_two(vec<int32_t>({1, 1, 1, -1}), vec<int32_t>({31, 32, -1, 4}), shift_left),
            vec<int32_t>({INT32_MIN, 0, 0, -16}));
  EXPECT_EQ(of_two(vec<int32_t>({-8, -8, 8, 8}), vec<int32_t>({1, 99, 1, -1}), shift_right),
            vec<int32_t>({-4, -1, 4, 0}));
  EXPECT_EQ(of_two(vec<uint32_t>({0xffffffffu}), vec<uint32_t>({28}), shift_right), vec<uint32_t>({15}));
}

TEST(Classify, tells_nan_infinity_and_numbers_apart) {
  const auto x = vec<float>({1, NAN, INFINITY, -INFINITY, 0});
  EXPECT_EQ(evaluate({x}, [](const Exprs& t) { return is_nan(t[0]); })[0],
            vec<bool>({false, true, false, false, false}));
  EXPECT_EQ(evaluate({x}, [](const Exprs& t) { return is_finite(t[0]); })[0],
            vec<bool>({true, false, false, false, true}));
}

TEST(StopGradient, is_the_identity_on_values) {
  const auto x = vec<float>({1, -2});
  EXPECT_EQ(evaluate({x}, [](const Exprs& t) { return stop_gradient(t[0]); })[0], x);
}

}  // namespace
}  // namespace rlx::ops
