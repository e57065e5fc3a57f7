#include <bit>
#include <cstdio>
#include <limits>

#include "rlx/backend/cpu/kernels/unary.h"
#include "tests/backend/cpu/support.h"
#include "tests/backend/cpu/unary_levels.h"
#include "tests/backend/cpu/unary_truth.h"

namespace rlx::cpu {
namespace {

using test::Array;
using Real = long double;

// The truth has the 64 bits of x87, or more.
Real truth(Unary op, Real x) { return test::true_unary<Real>(op, x); }
using test::ulps;

// All exponents and both signs, the range where most functions bend, and the special values.
Array<double> sweep() {
  const int64_t wide = 60000, dense = 60000;
  const double extra[] = {0.0, -0.0,   INFINITY, -INFINITY, NAN,    -1.0,
                          1.0, 709.78, 709.79,   -745.1,    -745.2, 0x1p-1074};
  Array<double> x(wide + 2 * dense + int64_t(std::size(extra)));
  for (int64_t i = 0; i < wide; ++i)
    x[i] = std::bit_cast<double>(uint64_t(i) * (UINT64_MAX / uint64_t(wide)));
  for (int64_t i = 0; i < dense; ++i) {
    x[wide + i] = double(i - dense / 2) / 700.0 + 1e-5;
    x[wide + dense + i] = double(i - dense / 2) / 39.0 + 1e-6;
  }
  for (size_t i = 0; i < std::size(extra); ++i) x[wide + 2 * dense + int64_t(i)] = extra[i];
  return x;
}

TEST(UnaryF64, every_function_is_within_four_ulp_at_every_level) {
  test::expect_within_ulps<Real>(sweep(), 4);
}

// The doubles next to multiples of pi/2 keep almost no bit of the first reduction.
TEST(UnaryF64, sine_and_cosine_hold_next_to_their_zeros) {
  const int64_t n = 20000;
  Array<double> x(n), y(n);
  for (int64_t i = 0; i < n; ++i) x[i] = double(Real(i * 50 + 1) * 1.57079632679489661923132169163975144L);
  Pool pool(1);
  const Isa before = current_isa();
  for (Isa isa : available_isas()) {
    use_isa(isa);
    for (Unary op : {Unary::sin, Unary::cos, Unary::tan}) {
      unary(pool, op, x.data(), y.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_LE(ulps(y[i], truth(op, x[i])), 4.0)
            << unary_name(op) << " of " << x[i] << " at " << isa_name(isa);
      }
    }
  }
  use_isa(before);
}

TEST(UnaryF64, power_is_within_four_ulp_and_keeps_the_special_cases) {
  const int64_t n = 100000;
  Array<double> a(n), b(n), y(n);
  const double special[] = {0,  -0.0,     1,         -1,  2,      -2,    0.5,  3,
                            -3, INFINITY, -INFINITY, NAN, 1e-310, 1e308, 1e300};
  for (int64_t i = 0; i < n; ++i) {
    const PhiloxBlock r = philox_block(1, 0, uint64_t(i));
    const auto uniform = [&](int j) { return double(r[size_t(j)]) * 0x1p-32; };
    a[i] = std::exp2(uniform(0) * 40 - 20);
    b[i] = uniform(1) * 100 - 50;
    if (i % 4 == 2) a[i] = 1 + (uniform(0) - 0.5) * 1e-3, b[i] = uniform(1) * 1.4e6 - 7e5;
    if (i % 4 == 3) a[i] = 0.7 + uniform(0) * 0.8, b[i] = uniform(1) * 4000 - 2000;
    if (i % 16 == 0) a[i] = special[r[2] % std::size(special)];
    if (i % 16 <= 1) b[i] = special[r[3] % std::size(special)];
  }
  const Isa before = current_isa();
  Pool pool(2);
  double worst = 0;
  for (Isa isa : available_isas()) {
    use_isa(isa);
    power(pool, a.data(), b.data(), y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const double u = ulps(y[i], std::pow(Real(a[i]), Real(b[i])));
      ASSERT_LE(u, 4.0) << a[i] << " ^ " << b[i] << " = " << y[i] << " at level " << isa_name(isa);
      worst = std::max(worst, u);
    }
  }
  use_isa(before);
  std::printf("pow | %.3f\n", worst);
}

TEST(UnaryF64, tails_and_odd_addresses_touch_nothing_else_and_threads_do_not_change_bits) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 1, 3, 7, 8, 9, 17, 5000}) {
      for (int offset : {0, 1, 3}) {
        Array<double> x(n, offset), y(n + 1, offset), alone(n);
        for (int64_t i = 0; i < n; ++i) x[i] = double(i % 61) / 9 - 3;
        y[n] = 123;
        unary(team, Unary::gelu, x.data(), y.data(), n);
        EXPECT_EQ(y[n], 123);
        Pool one(1);
        unary(one, Unary::gelu, x.data(), alone.data(), n);
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], alone[i]);
        for (int64_t i = 0; i < n; ++i) x[i] += 3.5;
        power(team, x.data(), y.data(), alone.data(), n);
        for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(alone[i], std::pow(x[i], y[i]), 1e-12 * (1 + alone[i]));
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
