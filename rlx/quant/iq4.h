// Four-bit codes into a fixed table whose steps widen away from zero, where fewer weights lie.
//
//            bytes                                                        value
//   iq4_nl   d | 16 nibble bytes (order as q4_0), 32 elements             d * table[nibble]
//   iq4_xs   d | u16 scale tops | 4 bytes scale bottoms | 8 groups of     d * (scale - 32) * table[nibble]
//            16 nibble bytes (order as q4_0), 256 elements
//
// Scale of group g in iq4_xs: nibble g of the bottoms (low nibble first) + 16 * bits 2g..2g+1 of the tops.
#pragma once

#include <cstddef>

#include "rlx/quant/half.h"

namespace rlx::quant {

inline constexpr int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

struct BlockIQ4_NL {
  Half d;
  uint8_t codes[16];
};
struct BlockIQ4_XS {
  Half d;
  uint8_t tops[2];
  uint8_t bottoms[4];
  uint8_t codes[128];

  /// 0..63; the value uses scale - 32.
  int scale(int group) const {
    const int bottom = bottoms[group / 2] >> (4 * (group % 2)) & 15;
    const int top = (tops[0] | tops[1] << 8) >> (2 * group) & 3;
    return bottom | top << 4;
  }
  /// Into zeroed bytes.
  void set_scale(int group, int scale) {
    bottoms[group / 2] |= uint8_t((scale & 15) << (4 * (group % 2)));
    tops[group / 4] |= uint8_t((scale >> 4) << (2 * (group % 4)));
  }
};

static_assert(sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136);

void decode_iq4_nl(const std::byte* in, float* out, int64_t count);
void decode_iq4_xs(const std::byte* in, float* out, int64_t count);
void encode_iq4_nl(const float* in, std::byte* out, int64_t count);
void encode_iq4_xs(const float* in, std::byte* out, int64_t count);

}  // namespace rlx::quant
