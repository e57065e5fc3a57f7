#include "rlx/backend/cpu/kernels/order.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

uint32_t word(uint64_t seed, int64_t i) { return philox_block(seed, 2, uint64_t(i))[0]; }

/// a < b with NaN above everything.
bool below(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// A type of elements: how they are made and what they are worth.
template <class T>
struct Plain {
  using Type = T;
  static constexpr DType dtype = std::is_same_v<T, float>      ? DType::f32
                                 : std::is_same_v<T, double>   ? DType::f64
                                 : std::is_same_v<T, uint8_t>  ? DType::u8
                                 : std::is_same_v<T, int8_t>   ? DType::i8
                                 : std::is_same_v<T, int16_t>  ? DType::i16
                                 : std::is_same_v<T, int32_t>  ? DType::i32
                                 : std::is_same_v<T, uint32_t> ? DType::u32
                                                               : DType::i64;
  static T make(double v) { return std::is_unsigned_v<T> ? T(std::abs(v)) : T(v); }
  static double value(T v) { return double(v); }
};
struct Half {
  using Type = uint16_t;
  static constexpr DType dtype = DType::f16;
  static uint16_t make(double v) { return f32_to_f16(float(v)); }
  static double value(uint16_t v) { return double(f16_to_f32(v)); }
};
struct Brain {
  using Type = uint16_t;
  static constexpr DType dtype = DType::bf16;
  static uint16_t make(double v) { return f32_to_bf16(float(v)); }
  static double value(uint16_t v) { return double(bf16_to_f32(v)); }
};

/// Values with repetitions, zeros of both signs and, for floats, NaN and infinities.
template <class Kind>
Array<typename Kind::Type> values(int64_t n, uint64_t seed, double range) {
  Array<typename Kind::Type> x(n, 1);
  const bool real = is_float(Kind::dtype);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t w = word(seed, i);
    double v = std::floor((double(w) * 0x1p-32 - 0.5) * range);
    if (real && w % 31 == 0) v = NAN;
    if (real && w % 37 == 0) v = w % 2 == 0 ? INFINITY : -INFINITY;
    if (real && w % 29 == 0) v = w % 2 == 0 ? 0.0 : -0.0;
    x[i] = Kind::make(v);
  }
  return x;
}

template <class Kind>
std::vector<int32_t> sorted_places(const typename Kind::Type* x, int64_t n, int64_t step, bool descending) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t p, int32_t q) {
    const double a = Kind::value(x[p * step]), b = Kind::value(x[q * step]);
    return descending ? below(b, a) : below(a, b);
  });
  return order;
}

template <class Kind>
void check_sort(Team team, int64_t outer, int64_t n, int64_t inner, bool descending, double range) {
  using T = typename Kind::Type;
  const auto x = values<Kind>(outer * n * inner, 1, range);
  Array<T> y(outer * n * inner, 1);
  Array<int32_t> places(outer * n * inner, 1), only(outer * n * inner, 1);
  Sort p{.dtype = Kind::dtype,
         .outer = outer,
         .n = n,
         .inner = inner,
         .descending = descending,
         .x = x.data(),
         .values = y.data(),
         .indices = places.data()};
  Array<std::byte> work(int64_t(sort_workspace(p, team.threads())));
  sort(team, p, work.data());
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t at = row / inner * n * inner + row % inner;
    const auto want = sorted_places<Kind>(x.data() + at, n, inner, descending);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(places[at + i * inner], want[size_t(i)]) << "row " << row << " place " << i << " of " << n;
      ASSERT_EQ(std::memcmp(&y[at + i * inner], &x[at + want[size_t(i)] * inner], sizeof(T)), 0);
    }
  }
  p.values = nullptr;
  p.indices = only.data();
  sort(team, p, work.data());
  test::expect_near(only.data(), places.data(), only.size(), 0);
}

template <class Kind>
void check_top_k(Team team, int64_t outer, int64_t n, int64_t inner, int64_t k, double range) {
  using T = typename Kind::Type;
  const auto x = values<Kind>(outer * n * inner, 2, range);
  Array<T> y(outer * k * inner, 1);
  Array<int32_t> places(outer * k * inner, 1);
  TopK p{.dtype = Kind::dtype,
         .outer = outer,
         .n = n,
         .inner = inner,
         .k = k,
         .x = x.data(),
         .values = y.data(),
         .indices = places.data()};
  Array<std::byte> work(int64_t(top_k_workspace(p, team.threads())));
  top_k(team, p, work.data());
  for (int64_t row = 0; row < outer * inner; ++row) {
    const int64_t at = row / inner * n * inner + row % inner, to = row / inner * k * inner + row % inner;
    const auto want = sorted_places<Kind>(x.data() + at, n, inner, true);
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(places[to + i * inner], want[size_t(i)]) << "row " << row << " place " << i << " of " << n;
      ASSERT_EQ(std::memcmp(&y[to + i * inner], &x[at + want[size_t(i)] * inner], sizeof(T)), 0);
    }
  }
}

template <class Kind>
void check_type(Team team) {
  for (bool descending : {false, true}) {
    check_sort<Kind>(team, 2, 40, 1, descending, 20);
    check_sort<Kind>(team, 1, 700, 2, descending, 100);
  }
  check_top_k<Kind>(team, 3, 50, 1, 7, 60);
  check_top_k<Kind>(team, 2, 50, 3, 50, 10);
}

TEST(Order, sort_and_top_k_agree_with_a_stable_sort_for_every_type) {
  test::at_every_level([](Team team) {
    check_type<Plain<uint8_t>>(team);
    check_type<Plain<int8_t>>(team);
    check_type<Plain<int16_t>>(team);
    check_type<Plain<int32_t>>(team);
    check_type<Plain<uint32_t>>(team);
    check_type<Plain<int64_t>>(team);
    check_type<Plain<double>>(team);
    check_type<Half>(team);
    check_type<Brain>(team);
    for (int64_t n : {0, 1, 2, 255, 257, 3000}) {
      for (double range : {4.0, 1e9}) {
        check_sort<Plain<float>>(team, 3, n, 1, false, range);
        check_sort<Plain<float>>(team, 2, n, 2, true, range);
      }
    }
  });
}

TEST(Order, a_long_row_is_sorted_by_all_threads_together) {
  for (int threads : {1, 2, 3}) {
    Pool pool(threads);
    check_sort<Plain<float>>(Team(pool), 1, 70001, 1, false, 1e4);
    check_sort<Plain<double>>(Team(pool), 1, 66000, 1, true, 1e4);
  }
}

TEST(Order, top_k_of_f32_rows_agrees_with_a_stable_sort) {
  test::at_every_level([](Team team) {
    for (int64_t n : {1, 15, 1024, 1025, 9000}) {
      for (int64_t k : {int64_t(0), int64_t(1), int64_t(3), n / 3, n}) {
        if (k > n) continue;
        check_top_k<Plain<float>>(team, 2, n, 1, k, 50);
        check_top_k<Plain<float>>(team, 1, n, 1, k, 1e9);
      }
    }
  });
}

TEST(Order, top_k_stops_at_nan_only) {
  Pool pool(1);
  Array<float> x(5000);
  for (int64_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? NAN : float(i);
  Array<int32_t> places(3);
  TopK p{.n = x.size(), .k = 3, .x = x.data(), .indices = places.data()};
  Array<std::byte> work(int64_t(top_k_workspace(p, Team(pool).threads())));
  top_k(Team(pool), p, work.data());
  EXPECT_EQ(places[0], 0);
  EXPECT_EQ(places[1], 2);
  EXPECT_EQ(places[2], 4);
  p.k = 5001;
  EXPECT_THROW(top_k(Team(pool), p, work.data()), Error);
}

/// The token by the definition, in f64, and how close the draw came to a border between tokens.
struct Drawn {
  int64_t token;
  double margin;
};
Drawn drawn(const float* logits, int64_t n, const SampleTokens& p, double u) {
  std::vector<double> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(double(logits[i] / float(p.temperature)));
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  if (p.top_k > 0 && p.top_k < n) order.resize(size_t(p.top_k));
  double total = 0, mass = 0, margin = 1;
  for (size_t i : order) total += std::exp(x[i] - x[order[0]]);
  std::vector<double> kept(x.size());
  for (size_t i : order) {
    margin = std::min(margin, std::abs(mass / total - p.top_p));
    if (mass / total >= p.top_p) break;
    mass += kept[i] = std::exp(x[i] - x[order[0]]);
  }
  if (p.top_p == 1) margin = 1;
  double running = 0;
  int64_t token = -1;
  for (int64_t i = 0; i < n; ++i) {
    running += kept[size_t(i)] / mass;
    margin = std::min(margin, std::abs(running - u));
    if (token < 0 && u < running) token = i;
  }
  return {token, margin};
}

TEST(Order, tokens_are_drawn_as_defined) {
  int64_t compared = 0;
  test::at_every_level([&](Team team) {
    for (int64_t n : {1, 5, 100, 3000}) {
      const int64_t rows = 6, stride = n + 2;
      const Array<float> logits = test::random_array(rows * stride, 4, -6, 6, 1);
      for (int64_t top_k : {0, 3, 40}) {
        for (double top_p : {1.0, 0.9, 0.3}) {
          for (double temperature : {1.0, 0.7, 1.6}) {
            Array<int32_t> tokens(rows, 1);
            SampleTokens p{.rows = rows,
                           .n = n,
                           .stride = stride,
                           .logits = logits.data(),
                           .top_k = top_k,
                           .top_p = top_p,
                           .temperature = temperature,
                           .key = 99,
                           .counter = 5,
                           .tokens = tokens.data()};
            Array<std::byte> work(int64_t(sample_tokens_workspace(p, team.threads())));
            sample_tokens(team, p, work.data());
            for (int64_t r = 0; r < rows; ++r) {
              const double u = double(uniform_from_bits(philox_block(99, 5, uint64_t(r / 4))[size_t(r % 4)]));
              const Drawn want = drawn(logits.data() + r * stride, n, p, u);
              if (want.margin < 1e-6) continue;  // the roundings of f32 may decide
              ASSERT_EQ(tokens[r], want.token) << n << " " << top_k << " " << top_p << " " << temperature;
              ++compared;
            }
          }
        }
      }
    }
  });
  EXPECT_GT(compared, 1750 * int64_t(available_isas().size()));
}

TEST(Order, temperature_zero_takes_the_largest_and_nan_counts_as_such) {
  test::at_every_level([](Team team) {
    for (int64_t n : {1, 3, 16, 64, 65, 1000}) {
      Array<float> logits = test::random_array(3 * n, 6, -1, 1, 1);
      for (int64_t i = 0; i < n; ++i) logits[n + i] = -INFINITY;
      logits[n / 2] = logits[n - 1] = 2;
      logits[2 * n + n / 3] = NAN;
      Array<int32_t> tokens(3);
      SampleTokens p{
          .rows = 3, .n = n, .stride = n, .logits = logits.data(), .temperature = 0, .tokens = tokens.data()};
      Array<std::byte> work(int64_t(sample_tokens_workspace(p, team.threads())));
      sample_tokens(team, p, work.data());
      ASSERT_EQ(tokens[0], n / 2);
      ASSERT_EQ(tokens[1], 0);
      ASSERT_EQ(tokens[2], n / 3);
    }
  });
}

TEST(Order, rows_without_a_distribution_give_token_zero) {
  Pool pool(1);
  for (double top_p : {1.0, 0.5}) {
    for (int64_t top_k : {0, 2}) {
      Array<float> logits = test::random_array(3 * 10, 7);
      logits[4] = NAN;
      for (int64_t i = 0; i < 10; ++i) logits[10 + i] = -INFINITY;
      logits[29] = INFINITY;
      Array<int32_t> tokens(3);
      SampleTokens p{.rows = 3,
                     .n = 10,
                     .stride = 10,
                     .logits = logits.data(),
                     .top_k = top_k,
                     .top_p = top_p,
                     .tokens = tokens.data()};
      Array<std::byte> work(int64_t(sample_tokens_workspace(p, Team(pool).threads())));
      sample_tokens(Team(pool), p, work.data());
      EXPECT_EQ(tokens[0], 0);
      EXPECT_EQ(tokens[1], 0);
      EXPECT_EQ(tokens[2], 0);
    }
  }
}

TEST(Order, what_has_no_order_is_refused) {
  Pool pool(1);
  EXPECT_THROW((void)sort_workspace({.dtype = DType::c64, .n = 3}, Team(pool).threads()), Error);
  EXPECT_THROW(sample_tokens(Team(pool), {.rows = 1, .n = 0}, nullptr), Error);
  EXPECT_THROW(sample_tokens(Team(pool), {.rows = 1, .n = 1, .top_p = 0}, nullptr), Error);
}

}  // namespace
}  // namespace rlx::cpu
