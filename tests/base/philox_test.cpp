#include "rlx/base/philox.h"

#include <gtest/gtest.h>

namespace rlx {
namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10 rounds).
TEST(Philox, matches_the_published_vectors) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(philox4x32_10({f, f, f, f}, {f, f}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, uniform_lies_in_the_half_open_interval) {
  EXPECT_EQ(uniform_from_bits(0), 0.0f);
  EXPECT_LT(uniform_from_bits(0xffffffff), 1.0f);
}

}  // namespace
}  // namespace rlx
