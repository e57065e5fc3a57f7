#include "rlx/backend/cpu/kernels/weight_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace rlx::cpu {
namespace {

// Blocks of every size class, made by several threads and freed in another order, keep what was written to them.
TEST(WeightMemory, blocks_are_aligned_and_apart) {
  const size_t sizes[] = {1, 100, 65536, 65537, 600000, 2400000, size_t(4) << 20, size_t(5) << 20};
  std::vector<std::pair<std::shared_ptr<std::byte>, size_t>> blocks[3];
  std::vector<std::thread> threads;
  for (auto& own : blocks) {
    threads.emplace_back([&own, &sizes, mark = &own - blocks] {
      for (int round = 0; round < 6; ++round) {
        for (const size_t bytes : sizes) {
          own.emplace_back(allocate_weights(bytes), bytes);
          ASSERT_EQ(reinterpret_cast<uintptr_t>(own.back().first.get()) % 64, 0u);
          std::memset(own.back().first.get(), int(mark) * 64 + int(own.size()), bytes);
        }
        own.front().first.reset();
        own.erase(own.begin());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (auto& own : blocks) {
    for (const auto& [data, bytes] : own) {
      for (size_t i = 0; i < bytes; i += 4093) ASSERT_EQ(data.get()[i], data.get()[0]);
      ASSERT_EQ(data.get()[bytes - 1], data.get()[0]);
    }
  }
}

TEST(WeightMemory, neighbours_lie_side_by_side_and_live_apart) {
  auto a = allocate_weights(600000), b = allocate_weights(600000), c = allocate_weights(600000);
  // Three blocks meet at most one border between regions.
  EXPECT_TRUE(b.get() - a.get() == 600000 || c.get() - b.get() == 600000);
  std::memset(b.get(), 2, 600000);
  a.reset();
  c.reset();
  EXPECT_EQ(b.get()[599999], std::byte(2));
}

}  // namespace
}  // namespace rlx::cpu
