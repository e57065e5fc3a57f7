// The decoders of packed blocks are text for the GPU's compiler, and C++: here they run on the host and give the bits that
// rlx/quant gives.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "rlx/quant/grid.h"
#include "rlx/quant/half.h"
#include "tests/backend/cuda/host_prelude.h"

// What these decoders need besides.
namespace rlx::cuda {
namespace {

inline u32 __funnelshift_r(u32 low, u32 high, u32 shift) {
  return u32((u64(high) << 32 | low) >> (shift & 31));
}
inline int __popc(u32 x) { return std::popcount(x); }
constexpr int kAlign = 16;
std::vector<u32> points;  // the codebook of the format under test

}  // namespace
}  // namespace rlx::cuda

#define RLX_DEVICE_TEXT(name, ...) \
  namespace {                      \
  __VA_ARGS__                      \
  }
#include "rlx/backend/cuda/kernels/block_decoders.h"
#undef RLX_DEVICE_TEXT

#include "rlx/backend/cuda/nodes/packed_format.h"

namespace rlx::cuda {
namespace {

template <class Format>
void expect_bits(const char* name, uint32_t seed) {
  SCOPED_TRACE(name);
  const quant::BlockFormat* const format = quant::find_format(name);
  ASSERT_NE(format, nullptr);
  ASSERT_EQ(Format::kBytes, format->bytes);
  ASSERT_EQ(Format::kElements, format->elements);
  constexpr int kBlocks = 64;
  std::mt19937 random(seed);
  // One byte in front of the blocks makes addresses of every alignment; aligned words around them are read.
  for (const size_t shift : {size_t(0), size_t(16)}) {
    std::vector<std::byte> bytes(size_t(Format::kBytes * kBlocks) + 64);
    for (std::byte& b : bytes) b = std::byte(random());
    std::byte* const first =
        reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(bytes.data()) + 15) / 16 * 16) + shift;
    std::vector<float> want(size_t(Format::kElements * kBlocks));
    format->decode(first, want.data(), int64_t(want.size()));
    for (int b = 0; b < kBlocks; ++b) {
      for (int k = 0; k < Format::kElements / 32; ++k) {
        const Strip s = Format::strip(reinterpret_cast<const u8*>(first) + b * Format::kBytes, k);
        if (!Format::kHalves) {
          EXPECT_EQ(std::memcmp(&s.scale[0], &s.scale[1], 4), 0);
        }
        for (int e = 0; e < 32; ++e) {
          const float code = float(int8_t(s.code[e / 4] >> (8 * (e % 4))));
          const float product = s.scale[e / 16] * code;
          const float got = Format::kOffsets ? product + s.offset[e / 16] : product;
          const float expected = want[size_t(b * Format::kElements + k * 32 + e)];
          if (std::isnan(expected) && std::isnan(got)) continue;
          ASSERT_EQ(got, expected) << "block " << b << ", strip " << k << ", element " << e;
        }
      }
    }
  }
}

TEST(BlockDecoders, give_the_bits_of_the_formats) {
  expect_bits<Q4_0>("q4_0", 1);
  expect_bits<Q4_1>("q4_1", 2);
  expect_bits<Q5_0>("q5_0", 3);
  expect_bits<Q5_1>("q5_1", 4);
  expect_bits<Q8_0>("q8_0", 5);
  expect_bits<Q8_1>("q8_1", 6);
  expect_bits<Q2_K>("q2_k", 7);
  expect_bits<Q3_K>("q3_k", 8);
  expect_bits<Q4_K>("q4_k", 9);
  expect_bits<Q5_K>("q5_k", 10);
  expect_bits<Q6_K>("q6_k", 11);
  expect_bits<Q8_K>("q8_k", 12);
  expect_bits<IQ4_NL>("iq4_nl", 13);
  expect_bits<IQ4_XS>("iq4_xs", 14);
  expect_bits<MXFP4>("mxfp4", 15);
  expect_bits<NVFP4>("nvfp4", 16);
  expect_bits<TQ1_0>("tq1_0", 17);
  expect_bits<TQ2_0>("tq2_0", 18);
}

template <class Format>
void expect_grid(const char* name, uint32_t seed) {
  points = codebook_words(*quant::find_grid_format(name));
  expect_bits<Format>(name, seed);
}

TEST(BlockDecoders, give_the_bits_of_the_codebook_formats) {
  expect_grid<IQ1_S>("iq1_s", 21);
  expect_grid<IQ1_M>("iq1_m", 22);
  expect_grid<IQ2_XXS>("iq2_xxs", 23);
  expect_grid<IQ2_XS>("iq2_xs", 24);
  expect_grid<IQ2_S>("iq2_s", 25);
  expect_grid<IQ3_XXS>("iq3_xxs", 26);
  expect_grid<IQ3_S>("iq3_s", 27);
}

// A format that is added to rlx/quant needs a decoder here.
TEST(BlockDecoders, know_every_format) {
  for (const quant::BlockFormat& f : quant::formats()) {
    if (f.is_plain() || f.decode == nullptr) continue;
    EXPECT_TRUE(decoder_text(f, 16).has_value()) << f.name;
  }
}

}  // namespace
}  // namespace rlx::cuda
