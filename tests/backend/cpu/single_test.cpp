#include "rlx/backend/cpu/kernels/single.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "rlx/backend/cpu/isa_table.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {

RLX_ISA_TABLE(SingleKernels, single_kernels)

namespace {

// Magnitudes from the smallest to the largest, both signs, and what is no number.
template <class T>
std::vector<T> numbers() {
  std::vector<T> out = {0, T(-0.0), INFINITY, -INFINITY, NAN, std::numeric_limits<T>::denorm_min()};
  for (int e = std::numeric_limits<T>::min_exponent; e < std::numeric_limits<T>::max_exponent; e += 3) {
    out.push_back(std::ldexp(T(0.7310585), e));
    out.push_back(-std::ldexp(T(0.6180339), e));
  }
  for (int i = -40; i <= 40; ++i) out.push_back(T(i) / 8);
  for (int i = -420; i <= 420; ++i)
    out.push_back(T(i) / 512);  // sin and cos reduce these no more, up to about 0.785
  // Around eighths of a turn, where sin and cos go from one series to the other, as far as they reduce by themselves.
  for (double turns = 1; turns < 2.5e6; turns = turns * 1.07 + 1) {
    T x = T(std::floor(turns) * 0.78539816339744831);
    for (int i = -3; i < 3; ++i) out.push_back(i % 2 == 0 ? x : -x), x = std::nextafter(x, T(INFINITY));
  }
  return out;
}

template <class T>
bool same_bits(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

// One number at a time: the sign of sin(-0) depends on whether a huge number is in the same vector.
template <class T, class Single>
void expect_lanes(Team team, Single single, Unary op) {
  for (const T x : numbers<T>()) {
    T y = 0;
    unary(team, op, &x, &y, 1);
    ASSERT_TRUE(same_bits(single(x), y)) << unary_name(op) << " of " << x << ": " << single(x) << ", " << y;
  }
}

TEST(Single, every_function_has_the_bits_of_a_lane) {
  test::at_every_level([](Team team) {
    for (int op = 0; op < kUnaryCount; ++op) {
      expect_lanes<float>(team, single_kernels().f32[op], Unary(op));
      expect_lanes<double>(team, single_kernels().f64[op], Unary(op));
    }
  });
}

TEST(Single, powers_have_the_bits_of_a_lane) {
  test::at_every_level([](Team team) {
    for (const float b : {-2.5f, -1.0f, 0.0f, 0.5f, 3.0f}) {
      for (const float a : numbers<float>()) {
        float y = 0;
        power(team, &a, &b, &y, 1);
        ASSERT_TRUE(same_bits(single_kernels().power_f32(a, b), y)) << a << " ^ " << b;
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
