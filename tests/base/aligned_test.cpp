#include "rlx/base/aligned.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/support/errors.h"

namespace rlx {
namespace {

TEST(Aligned, blocks_begin_at_a_cache_line_and_large_ones_at_a_huge_page) {
  for (const size_t bytes :
       {size_t(0), size_t(1), size_t(65), (size_t(4) << 20) - 1, (size_t(5) << 20) + 3}) {
    const AlignedBytes p = allocate_aligned(bytes);
    ASSERT_NE(p, nullptr);
    const size_t alignment = bytes >= size_t(4) << 20 ? size_t(2) << 20 : 64;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p.get()) % alignment, 0u) << bytes;
    std::memset(p.get(), 1, bytes);  // all of it may be written
  }
}

TEST(Aligned, too_much_is_an_error) {
  EXPECT_EQ(test::message_of([] { allocate_aligned(SIZE_MAX); }),
            "memory: none left, asked for 18446744073709551615 bytes");
}

}  // namespace
}  // namespace rlx
