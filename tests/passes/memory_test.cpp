#include "rlx/passes/memory.h"

#include <gtest/gtest.h>

#include <ctime>

#include "rlx/base/philox.h"

namespace rlx::passes {
namespace {

void expect_no_overlap(const std::vector<Lifetime>& buffers, const Placement& p) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(p.offsets[i] % 64, 0);
    EXPECT_LE(p.offsets[i] + buffers[i].bytes, p.bytes);
    for (size_t k = 0; k < i; ++k) {
      const bool together = buffers[i].first <= buffers[k].last && buffers[k].first <= buffers[i].last;
      const bool apart =
          p.offsets[i] + buffers[i].bytes <= p.offsets[k] || p.offsets[k] + buffers[k].bytes <= p.offsets[i];
      EXPECT_TRUE(!together || apart) << "buffers " << k << " and " << i;
    }
  }
}

TEST(PlaceBuffers, reuses_the_place_of_what_is_no_longer_in_use) {
  const std::vector<Lifetime> chain = {{128, 0, 1}, {128, 1, 2}, {128, 2, 3}};
  const Placement p = place_buffers(chain);
  expect_no_overlap(chain, p);
  EXPECT_EQ(p.bytes, 256);
  EXPECT_EQ(p.live_bytes, 256);
  EXPECT_EQ(p.offsets[0], p.offsets[2]);
}

TEST(PlaceBuffers, of_nothing_needs_nothing) {
  EXPECT_EQ(place_buffers({}).bytes, 0);
  const std::vector<Lifetime> empty = {{0, 0, 3}, {0, 1, 1}};
  EXPECT_EQ(place_buffers(empty).bytes, 0);
}

TEST(PlaceBuffers, of_random_lifetimes_never_overlap_and_stay_near_the_largest_live_set) {
  double worst = 1;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::vector<Lifetime> buffers;
    for (uint32_t i = 0; i < 200; ++i) {
      const auto r = philox_block(seed, 7, i);
      const int first = int(r[0] % 300), length = int(r[1] % (r[3] % 4 == 0 ? 200 : 8));
      buffers.push_back({64 + int64_t(r[2] % 4096), first, first + length});
    }
    const Placement p = place_buffers(buffers);
    expect_no_overlap(buffers, p);
    worst = std::max(worst, double(p.bytes) / double(p.live_bytes));
  }
  EXPECT_LT(worst, 1.25);
}

TEST(PlaceBuffers, of_ten_thousand_buffers_take_less_than_a_second) {
  std::vector<Lifetime> buffers;
  for (uint32_t i = 0; i < 10000; ++i) {
    const auto r = philox_block(1, 9, i);
    // As in training: half of the values wait for the way back.
    buffers.push_back({64 + int64_t(r[2] % 65536), int(i), r[0] % 2 ? int(20000 - i) : int(i + 2)});
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr double kSeconds = 10.0;
#else
  constexpr double kSeconds = 1.0;
#endif
  const std::clock_t begin = std::clock();
  const Placement p = place_buffers(buffers);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, kSeconds);
  EXPECT_LE(double(p.bytes), 1.05 * double(p.live_bytes));
}

}  // namespace
}  // namespace rlx::passes
