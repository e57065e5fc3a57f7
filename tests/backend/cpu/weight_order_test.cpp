#include "rlx/backend/cpu/kernels/weight_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "rlx/base/read_ahead.h"

namespace rlx::cpu {
namespace {

using Weights = WeightOrder::Weights;

TEST(WeightOrder, tells_what_followed_last_time) {
  const std::vector<std::byte> memory(1024);
  const Weights a{memory.data(), 64}, b{memory.data() + 64, 128}, c{memory.data() + 256, 256};
  WeightOrder order;
  const auto next = [&](const Weights& now) { return order.reads(now).data; };
  EXPECT_EQ(next(a), nullptr);
  EXPECT_EQ(next(b), nullptr);
  EXPECT_EQ(next(c), nullptr);
  EXPECT_EQ(next(a), b.data);
  EXPECT_EQ(order.reads(b).bytes, c.bytes);
  EXPECT_EQ(next(c), a.data);
  EXPECT_EQ(next(a), b.data);
  EXPECT_EQ(next(c), a.data);  // another way
  EXPECT_EQ(next(a), c.data);
}

TEST(WeightOrder, forgets_matrices_that_share_a_place_and_mixes_up_none) {
  const std::vector<std::byte> memory(64 * 5000);
  WeightOrder order;
  const auto weights = [&](int64_t i) { return Weights{memory.data() + 64 * i, size_t(i)}; };
  int64_t known = 0;
  for (int round = 0; round < 2; ++round) {
    for (int64_t i = 0; i < 5000; ++i) {
      const Weights next = order.reads(weights(i));
      if (next.data == nullptr) continue;
      EXPECT_EQ(next.data, weights((i + 1) % 5000).data);
      ++known;
    }
  }
  EXPECT_LT(known, 5000);
}

// Other threads that wait may take lines too.
TEST(ReadAhead, ends_with_the_range_and_needs_no_memory_there) {
  announce_read(reinterpret_cast<const void*>(uintptr_t(64)), 1000);
  int pieces = 0;
  while (read_announced()) ASSERT_LE(++pieces, 2);
  EXPECT_FALSE(read_announced());
  announce_read(&pieces, sizeof pieces);
  announce_read(nullptr, 0);
  EXPECT_FALSE(read_announced());
}

}  // namespace
}  // namespace rlx::cpu
