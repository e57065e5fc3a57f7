#include "rlx/backend/cpu/kernels/cumulative.h"

#include <limits>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

template <class T>
bool beats(Running kind, T v, T best) {
  if (v != v || best != best) return v != v && best == best;
  return kind == Running::max ? v > best : v < best;
}

template <class T>
void check(Team team, DType dtype, std::array<int64_t, 3> shape, Running kind, bool exclusive, bool reverse) {
  const auto [outer, n, inner] = shape;
  SCOPED_TRACE(testing::Message() << dtype_name(dtype) << " [" << outer << ", " << n << ", " << inner
                                  << "] kind " << int(kind) << (exclusive ? " exclusive" : "")
                                  << (reverse ? " reverse" : ""));
  const bool extreme = kind == Running::max || kind == Running::min;
  const int64_t count = outer * n * inner;
  Array<T> x(count, 1), y(count + 1, 1);
  Array<int32_t> indices(count + 1, 1);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t r = philox_block(7, 0, uint64_t(i))[0];
    if constexpr (std::is_integral_v<T>) {
      x[i] = extreme ? T(int(r % 1000) - 500) : T(uint64_t(r) * 0x9e3779b97f4a7c15u);
    } else {
      x[i] = kind == Running::prod ? T(0.99 + 0.02 * double(r) * 0x1p-32) : T(int(r % 2001) - 1000) / T(7);
      if (extreme && i % 977 == 901) x[i] = T(NAN);
    }
  }
  y[count] = 77, indices[count] = 77;
  cumulative(team, {.kind = kind,
                    .dtype = dtype,
                    .outer = outer,
                    .n = n,
                    .inner = inner,
                    .exclusive = exclusive,
                    .reverse = reverse,
                    .x = x.data(),
                    .y = y.data(),
                    .indices = extreme ? indices.data() : nullptr});
  ASSERT_EQ(y[count], 77);
  ASSERT_EQ(indices[count], 77);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      long double sum = 0, product = 1, size = 0;
      uint64_t wrapped_sum = 0, wrapped_product = 1;
      int64_t best = reverse ? n - 1 : 0;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t k = reverse ? n - 1 - j : j;
        const auto at = [&](int64_t q) { return (o * n + q) * inner + i; };
        const T v = x[at(k)];
        const auto expect = [&] {
          if (extreme) {
            const T want = x[at(best)];
            ASSERT_TRUE(y[at(k)] == want || (want != want && y[at(k)] != y[at(k)])) << "at " << k;
            ASSERT_EQ(indices[at(k)], best) << "at " << k;
          } else if constexpr (std::is_integral_v<T>) {
            ASSERT_EQ(y[at(k)], T(kind == Running::sum ? wrapped_sum : wrapped_product)) << "at " << k;
          } else {
            const double want = double(kind == Running::sum ? sum : product);
            const double scale = kind == Running::sum ? double(size) : want;
            // f32 rounds once; the carries of both err by a rounding per step.
            ASSERT_NEAR(double(y[at(k)]), want,
                        std::abs(want) * std::numeric_limits<T>::epsilon() + scale * double(j + 8) * 0x1p-53);
          }
        };
        if (exclusive) expect();
        if (beats(kind, v, x[at(best)])) best = k;
        sum += v, product *= v, size += std::abs((long double)(v));
        wrapped_sum += uint64_t(int64_t(std::is_integral_v<T> ? v : 0));
        wrapped_product *= uint64_t(int64_t(std::is_integral_v<T> ? v : 0));
        if (!exclusive) expect();
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

template <class T>
void check_all(Team team, DType dtype) {
  for (std::array<int64_t, 3> shape : {std::array<int64_t, 3>{1, 1, 1},
                                       {3, 7, 1},
                                       {20, 500, 1},
                                       {1, 70001, 1},
                                       {2, 5, 3},
                                       {3, 60, 70},
                                       {1, 9, 1100},
                                       {1, 3, 5000},
                                       {0, 3, 2},
                                       {2, 0, 3}}) {
    for (int kind = 0; kind < kRunningCount; ++kind) {
      for (bool reverse : {false, true}) {
        check<T>(team, dtype, shape, Running(kind), false, reverse);
        if (kind < 2) check<T>(team, dtype, shape, Running(kind), true, reverse);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Cumulative, every_kind_along_every_axis_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    check_all<float>(team, DType::f32);
    check_all<double>(team, DType::f64);
    check_all<int32_t>(team, DType::i32);
    check_all<int64_t>(team, DType::i64);
  });
}

TEST(Cumulative, the_result_may_be_the_operand_and_threads_do_not_change_bits) {
  for (std::array<int64_t, 3> shape : {std::array<int64_t, 3>{1, 100000, 1}, {30, 400, 1}, {2, 40, 600}}) {
    std::vector<double> x(size_t(shape[0] * shape[1] * shape[2]));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(double(i)) / 3;
    std::vector<std::vector<double>> seen;
    for (int threads : {1, 2, 3}) {
      Pool pool(threads);
      std::vector<double> apart(x.size()), same = x;
      Cumulative p{.dtype = DType::f64, .outer = shape[0], .n = shape[1], .inner = shape[2], .x = x.data()};
      p.y = apart.data();
      cumulative(pool, p);
      p.x = p.y = same.data();
      cumulative(pool, p);
      EXPECT_EQ(apart, same);
      seen.push_back(same);
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[2]);
  }
}

}  // namespace
}  // namespace rlx::cpu
