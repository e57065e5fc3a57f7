#include "rlx/quant/iq4.h"

#include <cmath>
#include <cstring>

#include "rlx/quant/blocks.h"
#include "rlx/quant/fit.h"
#include "rlx/quant/weighted.h"

namespace rlx::quant {
namespace {

constexpr TableGrid kGrid(kIq4Table);

void encode_codes(const float* x, float scale, uint8_t* codes) {
  const float inverse = inverse_or_zero(scale);
  for (int j = 0; j < 16; ++j) {
    codes[j] = uint8_t(kGrid.nearest(x[j] * inverse) | kGrid.nearest(x[j + 16] * inverse) << 4);
  }
}

float table_error(const float* x, const float* w, float scale) {
  const float inverse = inverse_or_zero(scale);
  float error = 0;
  for (int j = 0; j < 32; ++j) {
    const float e = x[j] - scale * kGrid.value(kGrid.nearest(x[j] * inverse));
    error += (w != nullptr ? w[j] : 1.0f) * (e * e);
  }
  return error;
}

}  // namespace

void encode_iq4_nl(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockIQ4_NL>(in, weights, out, count, 32,
                                    [](const float* x, const float* w, BlockIQ4_NL& b) {
                                      b.d = Half::saturated(fit_table(x, 32, kGrid, w));
                                      encode_codes(x, b.d.value(), b.codes);
                                    });
}

void encode_iq4_xs(const float* in, const float* weights, std::byte* out, int64_t count) {
  encode_each_weighted<BlockIQ4_XS>(
      in, weights, out, count, 256, [](const float* x, const float* w, BlockIQ4_XS& b) {
        std::memset(&b, 0, sizeof b);
        const auto of_group = [w](int g) { return w != nullptr ? w + 32 * g : nullptr; };
        float scales[8], extreme = 0;
        for (int g = 0; g < 8; ++g) {
          scales[g] = fit_table(x + 32 * g, 32, kGrid, of_group(g));
          if (std::abs(scales[g]) > std::abs(extreme)) extreme = scales[g];
        }
        b.d = Half::saturated(extreme / -32);  // the largest group scale becomes code -32
        const float d = b.d.value(), inverse = inverse_or_zero(d);
        for (int g = 0; g < 8; ++g) {
          // Rounding the scale moves the optimum: look at the neighbours too.
          const int middle = int(nearest_code(scales[g] * inverse, -32, 31));
          int best = middle;
          float least = table_error(x + 32 * g, of_group(g), d * float(middle));
          for (int code = middle - 1; code <= middle + 1; code += 2) {
            if (code < -32 || code > 31) continue;
            const float error = table_error(x + 32 * g, of_group(g), d * float(code));
            if (error < least) least = error, best = code;
          }
          encode_codes(x + 32 * g, d * float(best), b.codes + 16 * g);
          b.set_scale(g, best + 32);
        }
      });
}

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
