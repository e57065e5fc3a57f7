#include "rlx/backend/cpu/kernels/random.h"

#include <cmath>
#include <numbers>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

constexpr uint64_t kKeys[] = {7, 0xfedcba9876543210u, ~uint64_t(0)};
constexpr uint64_t kCounters[] = {0, 3, 0x123456789abcdefu};

uint32_t word(int64_t stream, uint64_t e) {
  return philox_block(kKeys[stream], kCounters[stream], e / 4)[e % 4];
}

template <class T>
Array<T> filled(Team team, RandomKind kind, DType dtype, int64_t streams, int64_t count, double low,
                double high) {
  Array<T> y(streams * count, 1);
  random_fill(team, {.kind = kind,
                     .dtype = dtype,
                     .streams = streams,
                     .count = count,
                     .keys = kKeys,
                     .counters = kCounters,
                     .low = low,
                     .high = high,
                     .y = y.data()});
  return y;
}

TEST(Random, bits_are_those_of_the_stream) {
  test::at_every_level([](Team team) {
    for (int64_t streams : {0, 1, 3}) {
      for (int64_t count : {0, 1, 3, 64, 65, 1000, 9001}) {
        const auto y = filled<uint32_t>(team, RandomKind::bits, DType::u32, streams, count, 0, 1);
        for (int64_t s = 0; s < streams; ++s) {
          for (int64_t e = 0; e < count; ++e) ASSERT_EQ(y[s * count + e], word(s, uint64_t(e))) << e;
        }
      }
    }
  });
}

TEST(Random, many_streams_are_split_by_stream) {
  Pool pool(3);
  const int64_t streams = 50, count = 700;
  std::vector<uint64_t> keys, counters;
  for (uint64_t s = 0; s < uint64_t(streams); ++s) keys.push_back(s * s), counters.push_back(s / 3);
  Array<uint32_t> y(streams * count);
  random_fill(
      Team(pool),
      {.streams = streams, .count = count, .keys = keys.data(), .counters = counters.data(), .y = y.data()});
  for (int64_t i = 0; i < y.size(); ++i) {
    const auto s = size_t(i / count);
    const auto e = uint64_t(i % count);
    ASSERT_EQ(y[i], philox_block(keys[s], counters[s], e / 4)[e % 4]);
  }
}

TEST(Random, fills_larger_than_the_caches_are_the_same) {
  test::at_every_level([](Team team) {
    const int64_t count = (int64_t(8) << 18) + 77;  // just above what is written past the caches
    for (int offset : {0, 1}) {
      Array<uint32_t> bits(count, offset);
      Array<float> unit(count, offset);
      random_fill(team, {.count = count, .keys = kKeys, .counters = kCounters, .y = bits.data()});
      random_fill(team, {.kind = RandomKind::uniform,
                         .dtype = DType::f32,
                         .count = count,
                         .keys = kKeys,
                         .counters = kCounters,
                         .y = unit.data()});
      for (int64_t e = 0; e < count; e += e + 1500 < count ? 1 + e % 1500 : 1) {
        ASSERT_EQ(bits[e], word(0, uint64_t(e))) << e;
        ASSERT_EQ(unit[e], uniform_from_bits(bits[e]));
      }
    }
  });
}

// low + (high - low) u with each step rounded to the type.
template <class Round>
double uniform_steps(uint32_t bits, int kept, double low, double high, Round round) {
  const double u = std::ldexp(double(bits >> (32 - kept)), -kept);
  return round(round(u * round(high - low)) + round(low));
}

TEST(Random, uniform_numbers_are_exact_in_every_type) {
  const auto to_f32 = [](double v) { return double(float(v)); };
  const auto to_f16 = [](double v) { return double(f16_to_f32(f32_to_f16(float(v)))); };
  const auto to_bf16 = [](double v) { return double(bf16_to_f32(f32_to_bf16(float(v)))); };
  test::at_every_level([&](Team team) {
    for (auto [low, high] : {std::pair{0.0, 1.0}, {-2.0, 3.5}, {0.1, 0.3}}) {
      const int64_t count = 4500;
      const auto f32 = filled<float>(team, RandomKind::uniform, DType::f32, 2, count, low, high);
      const auto f16 = filled<uint16_t>(team, RandomKind::uniform, DType::f16, 2, count, low, high);
      const auto bf16 = filled<uint16_t>(team, RandomKind::uniform, DType::bf16, 2, count, low, high);
      const auto f64 = filled<double>(team, RandomKind::uniform, DType::f64, 2, count, low, high);
      for (int64_t i = 0; i < 2 * count; ++i) {
        const int64_t s = i / count;
        const auto e = uint64_t(i % count);
        const uint32_t bits = word(s, e);
        ASSERT_EQ(double(f32[i]), uniform_steps(bits, 24, low, high, to_f32));
        ASSERT_EQ(double(f16_to_f32(f16[i])), uniform_steps(bits, 11, low, high, to_f16));
        ASSERT_EQ(double(bf16_to_f32(bf16[i])), uniform_steps(bits, 8, low, high, to_bf16));
        const double u = double(word(s, 2 * e) >> 5) * 0x1p-27 + double(word(s, 2 * e + 1) >> 6) * 0x1p-53;
        ASSERT_EQ(f64[i], u * (high - low) + low);
      }
    }
  });
}

TEST(Random, normal_numbers_are_the_box_muller_transform_of_their_words) {
  test::at_every_level([](Team team) {
    for (int64_t count : {1, 5, 32, 5000}) {
      const double mean = 0.5, deviation = 2;
      const auto f32 = filled<float>(team, RandomKind::normal, DType::f32, 2, count, mean, deviation);
      const auto f16 = filled<uint16_t>(team, RandomKind::normal, DType::f16, 2, count, mean, deviation);
      const auto bf16 = filled<uint16_t>(team, RandomKind::normal, DType::bf16, 2, count, mean, deviation);
      const auto f64 = filled<double>(team, RandomKind::normal, DType::f64, 2, count, mean, deviation);
      for (int64_t i = 0; i < 2 * count; ++i) {
        const int64_t s = i / count;
        const auto e = uint64_t(i % count);
        const float u = uniform_from_bits(word(s, 2 * e)), v = uniform_from_bits(word(s, 2 * e + 1));
        // 2 pi v is an f32, as the operator forms it; its error, times the radius, is part of the definition.
        const float angle = float(2 * std::numbers::pi) * v;
        const double z = std::sqrt(-2 * std::log(1 - double(u))) * std::cos(double(angle));
        const double want = mean + deviation * z;
        // Six roundings: log, its product, root, cos, product, sum; and 1e-7 where cos passes through zero.
        ASSERT_NEAR(f32[i], want, 2e-6 * (1 + std::abs(want))) << i;
        ASSERT_NEAR(f16_to_f32(f16[i]), want, 1e-3 * (1 + std::abs(want)));
        ASSERT_NEAR(bf16_to_f32(bf16[i]), want, 8e-3 * (1 + std::abs(want)));
        const auto unit = [&](uint64_t at) {
          return double(word(s, at) >> 5) * 0x1p-27 + double(word(s, at + 1) >> 6) * 0x1p-53;
        };
        const double radius = std::sqrt(-2 * std::log(1 - unit(4 * e)));
        ASSERT_NEAR(f64[i], mean + deviation * radius * std::cos(2 * std::numbers::pi * unit(4 * e + 2)),
                    1e-14 * 12);
      }
    }
  });
}

TEST(Random, normal_numbers_have_their_moments) {
  Pool pool(2);
  const int64_t count = 400000;
  const auto y = filled<float>(Team(pool), RandomKind::normal, DType::f32, 1, count, 0, 1);
  double sum = 0, squares = 0, fourth = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double v = double(y[i]);
    sum += v, squares += v * v, fourth += v * v * v * v;
  }
  const double n = double(count);  // standard errors: 1/sqrt(n), sqrt(2/n), sqrt(96/n)
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
}

TEST(Random, dropout_zeroes_by_word_and_scales_the_rest) {
  test::at_every_level([](Team team) {
    for (double rate : {0.0, 0.1, 0.5, 0.999}) {
      for (int64_t count : {0, 1, 17, 6000}) {
        const Array<float> x = test::random_array(count, 3, 1, 2, 1);
        Array<float> y(count, 2);
        dropout(team, {.count = count,
                       .key = kKeys[0],
                       .counter = kCounters[0],
                       .rate = rate,
                       .x = x.data(),
                       .y = y.data()});
        for (int64_t i = 0; i < count; ++i) {
          const bool kept = double(word(0, uint64_t(i))) >= std::nearbyint(rate * 0x1p32);
          ASSERT_EQ(y[i], kept ? x[i] * float(1 / (1 - rate)) : 0.0f) << i;
        }
      }
    }
  });
}

TEST(Random, types_that_hold_no_such_numbers_are_refused) {
  Pool pool(1);
  EXPECT_THROW(random_fill(Team(pool), {.kind = RandomKind::bits, .dtype = DType::f32}), Error);
  EXPECT_THROW(random_fill(Team(pool), {.kind = RandomKind::normal, .dtype = DType::i32}), Error);
}

}  // namespace
}  // namespace rlx::cpu
