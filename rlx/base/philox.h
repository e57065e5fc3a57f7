// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a keyed
// bijection of a 128-bit counter. The draw at a counter needs no earlier draw, so any element of a random
// tensor can be computed alone, on any thread, with the same result.
#pragma once

#include <array>
#include <cstdint>

namespace rlx {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * counter[0];
    const uint64_t p1 = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(p1 >> 32) ^ counter[1] ^ key[0], uint32_t(p1),
               uint32_t(p0 >> 32) ^ counter[3] ^ key[1], uint32_t(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Block `index` of the stream (key, counter): four words at 128-bit position (index, counter).
constexpr PhiloxBlock philox_block(uint64_t key, uint64_t counter, uint64_t index) {
  return philox4x32_10({uint32_t(index), uint32_t(index >> 32), uint32_t(counter), uint32_t(counter >> 32)},
                       {uint32_t(key), uint32_t(key >> 32)});
}

/// Uniform in [0, 1) from the top 24 bits: every value is exact in f32.
constexpr float uniform_from_bits(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }

}  // namespace rlx
