// The codebooks of the iq formats as the product wants them: a point is one word, and a byte of it the number
// of rlx/quant/grid.h plus 8 for iq1, plus 128 for iq2 and iq3. Then the negative number is the negative byte.
#pragma once

#include <array>
#include <cstdint>

namespace rlx::cpu {

extern const std::array<uint64_t, 2048> kGridIq1;
extern const std::array<uint64_t, 256> kGridIq2Xxs;
extern const std::array<uint64_t, 512> kGridIq2Xs;
extern const std::array<uint64_t, 1024> kGridIq2S;
extern const std::array<uint32_t, 256> kGridIq3Xxs;
extern const std::array<uint32_t, 512> kGridIq3S;

}  // namespace rlx::cpu
