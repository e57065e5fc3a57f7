#include "rlx/backend/cuda/compile/architecture.h"

#include <gtest/gtest.h>

namespace rlx::cuda {
namespace {

TEST(Architecture, is_told_by_its_number_and_not_by_the_order_of_names) {
  EXPECT_EQ(architecture_number("sm_80"), 80);
  EXPECT_EQ(architecture_number("sm_90a"), 90);
  EXPECT_EQ(architecture_number("sm_120"), 120);
  EXPECT_EQ(architecture_number("compute"), 0);
  EXPECT_FALSE(has_clusters("sm_89"));
  EXPECT_TRUE(has_clusters(kHopper));
  EXPECT_TRUE(has_clusters("sm_100"));
  EXPECT_TRUE(has_clusters("sm_120"));
}

TEST(Architecture, of_servers_has_much_shared_memory) {
  EXPECT_EQ(shared_memory_of("sm_80"), 163 << 10);
  EXPECT_EQ(shared_memory_of("sm_86"), 99 << 10);
  EXPECT_EQ(shared_memory_of(kHopper), 227 << 10);
  EXPECT_EQ(shared_memory_of("sm_100"), 227 << 10);
  EXPECT_EQ(shared_memory_of("sm_120"), 99 << 10);
}

}  // namespace
}  // namespace rlx::cuda
