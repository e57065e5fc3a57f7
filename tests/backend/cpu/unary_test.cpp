#include "rlx/backend/cpu/kernels/unary.h"

#include <bit>
#include <limits>

#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"
#include "tests/backend/cpu/unary_levels.h"
#include "tests/backend/cpu/unary_truth.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::ulps;

// Every 2039th bit pattern of f32: all exponents, both signs, infinities and NaN.
Array<float> sweep() {
  const int64_t n = (int64_t(1) << 32) / 2039;
  Array<float> x(n + 6);
  for (int64_t i = 0; i < n; ++i) x[i] = std::bit_cast<float>(uint32_t(i * 2039));
  const float extra[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -1.0f};
  for (int i = 0; i < 6; ++i) x[n + i] = extra[i];
  return x;
}

TEST(Unary, every_function_is_within_two_ulp_at_every_level) { test::expect_within_ulps<double>(sweep(), 2); }

TEST(Unary, power_is_within_two_ulp_and_keeps_the_special_cases) {
  const int64_t n = 400000;
  Array<float> a(n), b(n), y(n);
  const float special[] = {0, -0.0f, 1, -1, 2, -2, 0.5f, 3, -3, INFINITY, -INFINITY, NAN, 1e-40f, 1e38f};
  for (int64_t i = 0; i < n; ++i) {
    const PhiloxBlock r = philox_block(1, 0, uint64_t(i));
    a[i] = std::exp2(uniform_from_bits(r[0]) * 40 - 20);
    b[i] = uniform_from_bits(r[1]) * 12 - 6;
    if (i % 8 == 0) a[i] = special[r[2] % 14];
    if (i % 8 <= 1) b[i] = special[r[3] % 14];
  }
  Pool pool(2);
  for (Isa isa : available_isas()) {
    use_isa(isa);
    power(pool, a.data(), b.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const double want = std::pow(double(a[i]), double(b[i]));
      ASSERT_LE(ulps(y[i], want), 2.0) << a[i] << " ^ " << b[i] << " at level " << isa_name(isa);
    }
  }
}

// Lanes do not see their neighbours: an odd function keeps the sign of zero beside a number that takes another road.
TEST(Unary, odd_functions_keep_the_sign_of_zero_beside_huge_numbers) {
  test::at_every_level([](Team team) {
    for (Unary op : {Unary::sin, Unary::tan, Unary::tanh, Unary::atan, Unary::erf}) {
      for (int64_t huge = 0; huge < 17; ++huge) {
        Array<float> x(17), y(17);
        Array<double> wide(17), z(17);
        for (int64_t i = 0; i < 17; ++i)
          x[i] = i == huge ? 1e30f : (i % 3 == 0 ? 0.0f : -0.0f), wide[i] = x[i];
        unary(team, op, x.data(), y.data(), 17);
        unary(team, op, wide.data(), z.data(), 17);
        for (int64_t i = 0; i < 17; ++i) {
          if (i == huge) continue;
          ASSERT_EQ(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(y[i]))
              << unary_name(op) << " lane " << i;
          ASSERT_EQ(std::bit_cast<uint64_t>(wide[i]), std::bit_cast<uint64_t>(z[i]))
              << unary_name(op) << " lane " << i;
        }
      }
    }
  });
}

TEST(Unary, tails_and_odd_addresses_touch_nothing_else_and_threads_do_not_change_bits) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 1, 3, 7, 15, 16, 17, 33, 9000}) {
      for (int offset : {0, 1, 3}) {
        const Array<float> x = test::random_array(n + 2, 7, -3, 3, offset);
        const Array<float> w = test::random_array(n, 8, -1, 1, offset), b = test::random_array(n, 9);
        Array<float> y(n + 2, offset);
        y[n] = 123;
        unary(team, Unary::gelu_tanh, x.data(), y.data(), n);
        EXPECT_EQ(y[n], 123);
        Pool one(1);
        Array<float> alone(n);
        unary(one, Unary::gelu_tanh, x.data(), alone.data(), n);
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], alone[i]);
        unary_affine(team, Unary::tanh, x.data(), w.data(), b.data(), y.data(), n);
        EXPECT_EQ(y[n], 123);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_NEAR(y[i], std::tanh(double(x[i]) * double(w[i]) + double(b[i])), 1e-6);
        }
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
