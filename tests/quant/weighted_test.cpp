// Encoding under weights: the weighted error falls, equal weights change nothing.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/base/philox.h"
#include "rlx/quant/weighted.h"
#include "tests/support/errors.h"

namespace rlx::quant {
namespace {

constexpr size_t kCount = 64 * 512;

float uniform(uint64_t stream, uint64_t i) { return uniform_from_bits(philox_block(stream, 1, i)[0]); }

std::vector<float> source() {
  std::vector<float> x(kCount);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = uniform(3, 4 * i) + uniform(3, 4 * i + 1) + uniform(3, 4 * i + 2) + uniform(3, 4 * i + 3) - 2;
  return x;
}

// Activations: most columns small, some a hundred times as large.
std::vector<float> column_weights() {
  std::vector<float> w(kCount);
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::exp(5 * uniform(9, i % 512));
  return w;
}

std::vector<std::byte> encoded(const BlockFormat& f, const std::vector<float>& x,
                               const std::vector<float>& w) {
  std::vector<std::byte> out(size_t(encoded_bytes(f, int64_t(x.size()))));
  if (w.empty()) {
    encode(f, x, out);
  } else {
    encode_weighted(f, x, w, out);
  }
  return out;
}

double weighted_error(const BlockFormat& f, const std::vector<std::byte>& packed, const std::vector<float>& x,
                      const std::vector<float>& w) {
  std::vector<float> y(x.size());
  decode(f, packed, y);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += double(w[i]) * std::pow(double(x[i]) - double(y[i]), 2);
  return sum;
}

std::vector<std::string> block_formats() {
  std::vector<std::string> out;
  for (const BlockFormat& f : formats())
    if (!f.is_plain() && f.encode != nullptr && f.decode != nullptr) out.emplace_back(f.name);
  return out;
}

class Weighted : public testing::TestWithParam<std::string> {
 protected:
  const BlockFormat& format() const { return *find_format(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Formats, Weighted, testing::ValuesIn(block_formats()),
                         [](const auto& info) { return info.param; });

TEST_P(Weighted, error_falls) {
  const std::vector<float> x = source(), w = column_weights();
  const double before = weighted_error(format(), encoded(format(), x, {}), x, w);
  const double after = weighted_error(format(), encoded(format(), x, w), x, w);
  // Eight bits leave nothing to choose; elsewhere there is something to win.
  if (GetParam().starts_with("q8")) {
    EXPECT_EQ(after, before);
  } else {
    EXPECT_LT(after, 0.998 * before) << "won " << 1 - after / before;
  }
}

TEST_P(Weighted, equal_weights_change_nothing) {
  const std::vector<float> x = source();
  const std::vector<std::byte> plain = encoded(format(), x, {});
  EXPECT_EQ(encoded(format(), x, std::vector<float>(x.size(), 1)), plain);
  EXPECT_EQ(encoded(format(), x, std::vector<float>(x.size(), 0)), plain);
}

TEST_P(Weighted, extreme_weights_are_held) {
  const std::vector<float> x = source();
  std::vector<float> w(x.size(), 1e-30f);
  for (size_t i = 0; i < w.size(); i += 97) w[i] = 1e30f;
  const auto packed = encoded(format(), x, w);
  std::vector<float> y(x.size());
  decode(format(), packed, y);
  for (const float v : y) ASSERT_TRUE(std::isfinite(v));
}

TEST(WeightedEncoding, refuses) {
  const BlockFormat& f = *find_format("q4_0");
  std::vector<float> x(32), w(32, 1);
  std::vector<std::byte> out(18);
  w[3] = -1;
  EXPECT_EQ(test::message_of([&] { encode_weighted(f, x, w, out); }),
            "quant encode: weight 3 is -1.0; a finite number, not negative, expected");
  w.pop_back();
  EXPECT_EQ(test::message_of([&] { encode_weighted(f, x, w, out); }),
            "quant encode: 31 weights for 32 elements");
}

}  // namespace
}  // namespace rlx::quant
