// Codebook formats: the tables, the layouts for every byte pattern, and how near the encoder comes.
#include "rlx/quant/grid.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>

#include "rlx/base/json.h"
#include "rlx/base/philox.h"
#include "rlx/quant/format.h"
#include "tests/support/data.h"

namespace rlx::quant {
namespace {

constexpr const char* kNames[] = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"};

class GridFormats : public testing::TestWithParam<const char*> {
 protected:
  const GridFormat& grid = *find_grid_format(GetParam());
  const BlockFormat& format = *find_format(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Quant, GridFormats, testing::ValuesIn(kNames),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GridFormats, have_the_points_of_the_stored_tables) {
  RLX_REQUIRE_DATA("quant/iq-grids.json");
  std::string key = GetParam() == std::string("iq1_m") ? "iq1_s" : GetParam();
  for (char& c : key) c = char(std::toupper(c));
  const Json stored = Json::read(test::data_path("quant/iq-grids.json"));
  const int unit = grid.has_signs() ? 1 : 8;
  std::vector<int64_t> numbers;
  for (const JsonView point : stored.at(key).items()) {
    for (const JsonView level : point.items()) numbers.push_back(unit * level.integer());
  }
  EXPECT_EQ(numbers, std::vector<int64_t>(grid.numbers.begin(), grid.numbers.end()));
}

TEST(GridSigns, of_seven_bits_are_even_in_number) {
  RLX_REQUIRE_DATA("quant/iq-grids.json");
  const Json stored = Json::read(test::data_path("quant/iq-grids.json"));
  int seven = 0;
  for (const JsonView signs : stored.at("signs").items()) {
    EXPECT_EQ(int64_t(with_even_signs(seven++)), signs.integer());
  }
  EXPECT_EQ(seven, 128);
}

std::vector<std::byte> random_blocks(const BlockFormat& f, int count) {
  std::vector<std::byte> bytes(size_t(count * f.bytes));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(philox_block(3, 9, i)[0] & 255);
  return bytes;
}

// Every bit of a block means something, and every pattern is a block: nothing outside of the tables is read
// (under the sanitizers), and nothing is lost.
TEST_P(GridFormats, take_any_bytes_apart_and_together_again) {
  constexpr int kBlocks = 400;
  std::vector<std::byte> blocks = random_blocks(format, kBlocks);
  std::fill_n(blocks.begin(), format.bytes, std::byte{0xff});
  std::fill_n(blocks.begin() + format.bytes, format.bytes, std::byte{0});
  for (int b = 0; b < kBlocks; ++b) {
    const std::byte* block = blocks.data() + b * format.bytes;
    GridCodes codes;
    grid.take_apart(block, codes);
    for (int i = 0; i < 256 / grid.width; ++i) ASSERT_LT(codes.index[i], grid.points.size());
    for (const uint8_t s : codes.scale) ASSERT_LT(int(s), grid.scales);
    std::vector<std::byte> again(size_t(format.bytes), std::byte{0xaa});
    grid.put_together(codes, again.data());
    ASSERT_TRUE(std::equal(again.begin(), again.end(), block)) << "block " << b;
  }
  std::vector<float> values(256 * kBlocks);
  decode(format, blocks, values);
  for (int n : {1, 3, 7}) {  // fewer blocks are the same values, at any alignment
    std::vector<std::byte> shifted(size_t(n * format.bytes) + 1);
    std::copy_n(blocks.begin() + 2 * format.bytes, n * format.bytes, shifted.begin() + 1);
    std::vector<float> some(size_t(256 * n));
    decode(format, std::span(shifted).subspan(1), some);
    EXPECT_EQ(std::memcmp(some.data(), values.data() + 512, some.size() * 4), 0);
  }
}

// By the formulas, from the parts: sign, shift, scale and unit of each element.
TEST_P(GridFormats, decode_to_the_stated_value) {
  const std::vector<std::byte> blocks = random_blocks(format, 20);
  std::vector<float> values(256 * 20);
  decode(format, blocks, values);
  for (int b = 0; b < 20; ++b) {
    GridCodes c;
    grid.take_apart(blocks.data() + b * format.bytes, c);
    for (int e = 0; e < 256; ++e) {
      const double level = grid.levels[size_t(
          grid.points[c.index[e / grid.width]] /
          size_t(std::pow(double(grid.levels.size()), e % grid.width) + 0.5) % grid.levels.size())];
      const bool negative = c.signs[e / 8] >> (e % 8) & 1;
      const double s = c.scale[e / 16], d = c.d.value();
      const std::string_view name = grid.name;
      const double want = name.starts_with("iq1")
                              ? d * (2 * s + 1) * (level / 8 + (negative ? -0.125 : 0.125))
                          : name.starts_with("iq2") ? d * (0.5 + s) * 0.25 * level * (negative ? -1 : 1)
                          : name == "iq3_xxs"       ? d * (0.5 + s) * 0.5 * level * (negative ? -1 : 1)
                                                    : d * (1 + 2 * s) * level * (negative ? -1 : 1);
      const float got = values[size_t(256 * b + e)];
      if (std::isfinite(d)) {
        ASSERT_EQ(double(got), want) << "block " << b << " element " << e;
      } else {
        ASSERT_FALSE(std::isfinite(got));
      }
    }
  }
}

// The points that were picked against the best of all points, at the scales and signs that were picked.
TEST_P(GridFormats, encoder_finds_nearly_the_nearest_points) {
  constexpr int kBlocks = 8;
  std::vector<float> x(256 * kBlocks);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto bits = philox_block(2, 6, i);
    x[i] = uniform_from_bits(bits[0]) + uniform_from_bits(bits[1]) + uniform_from_bits(bits[2]) - 1.5f;
  }
  std::vector<std::byte> blocks(size_t(kBlocks * format.bytes));
  encode(format, x, blocks);
  double found = 0, best = 0;
  for (int b = 0; b < kBlocks; ++b) {
    GridCodes c;
    grid.take_apart(blocks.data() + b * format.bytes, c);
    for (int first = 0; first < 256; first += grid.width) {
      const float scale = c.d.value() * float(2 * c.scale[first / 16] + 1) * grid.unit;
      const auto error = [&](size_t point) {
        double sum = 0;
        for (int j = 0; j < grid.width; ++j) {
          const int e = first + j, level = grid.numbers[point * size_t(grid.width) + size_t(j)];
          const int sign = c.signs[e / 8] >> (e % 8) & 1 ? -1 : 1;
          const float value = scale * float(grid.has_signs() ? sign * level : level + sign);
          sum += std::pow(double(x[size_t(256 * b + e)] - value), 2);
        }
        return sum;
      };
      double least = std::numeric_limits<double>::infinity();
      for (size_t p = 0; p < grid.points.size(); ++p) least = std::min(least, error(p));
      found += error(c.index[first / grid.width]);
      best += least;
    }
  }
  EXPECT_LE(found, best * 1.01);
  EXPECT_GT(best, 0);
}

}  // namespace
}  // namespace rlx::quant
