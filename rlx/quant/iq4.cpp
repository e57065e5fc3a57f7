#include "rlx/quant/iq4.h"

#include "rlx/quant/blocks.h"

namespace rlx::quant {

void decode_iq4_nl(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockIQ4_NL>(in, out, count, 32, [](const BlockIQ4_NL& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < 16; ++j) {
      y[j] = d * float(kIq4Table[b.codes[j] & 15]);
      y[j + 16] = d * float(kIq4Table[b.codes[j] >> 4]);
    }
  });
}

void decode_iq4_xs(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockIQ4_XS>(in, out, count, 256, [](const BlockIQ4_XS& b, float* y) {
    for (int g = 0; g < 8; ++g, y += 32) {
      const float scale = b.d.value() * float(b.scale(g) - 32);
      for (int j = 0; j < 16; ++j) {
        y[j] = scale * float(kIq4Table[b.codes[16 * g + j] & 15]);
        y[j + 16] = scale * float(kIq4Table[b.codes[16 * g + j] >> 4]);
      }
    }
  });
}

}  // namespace rlx::quant
