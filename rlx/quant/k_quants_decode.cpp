#include <cstring>

#include "rlx/quant/blocks.h"
#include "rlx/quant/k_quants.h"

namespace rlx::quant {

std::array<uint8_t, 16> unpack_scales_q3_k(const uint8_t (&packed)[12]) {
  // Bytes 0-7 hold the low nibbles: scale i low, scale 8+i high. Pair k of byte 8+i tops scale 4k+i.
  std::array<uint8_t, 16> scales{};
  for (int s = 0; s < 16; ++s) {
    const int bottom = s < 8 ? packed[s] & 15 : packed[s - 8] >> 4;
    const int top = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
    scales[size_t(s)] = uint8_t(bottom | top << 4);
  }
  return scales;
}

ScalesAndMins unpack_scales_q4_k(const uint8_t (&p)[12]) {
  // Pairs 0-3 lie whole in the low six bits of bytes 0-7; pairs 4-7 have their bottoms in bytes 8-11 and
  // their tops in the two bits left over.
  ScalesAndMins out;
  for (int j = 0; j < 4; ++j) {
    out.scale[j] = p[j] & 63;
    out.min[j] = p[j + 4] & 63;
    out.scale[j + 4] = uint8_t((p[j + 8] & 15) | (p[j] >> 6) << 4);
    out.min[j + 4] = uint8_t(p[j + 8] >> 4 | (p[j + 4] >> 6) << 4);
  }
  return out;
}

void decode_q2_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ2_K>(in, out, count, kSuperBlock, [](const BlockQ2_K& b, float* y) {
    const float d = b.d.value(), dmin = b.dmin.value();
    for (int e = 0; e < kSuperBlock; ++e) {
      const int half = e / 128, shift = 2 * (e % 128 / 32);
      const int q = b.codes[32 * half + e % 32] >> shift & 3;
      const uint8_t s = b.scales[e / 16];
      y[e] = (d * float(s & 15)) * float(q) - dmin * float(s >> 4);
    }
  });
}

void decode_q3_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ3_K>(in, out, count, kSuperBlock, [](const BlockQ3_K& b, float* y) {
    const float d = b.d.value();
    const auto scales = unpack_scales_q3_k(b.scales);
    for (int e = 0; e < kSuperBlock; ++e) {
      const int half = e / 128, shift = 2 * (e % 128 / 32);
      const int q = b.codes[32 * half + e % 32] >> shift & 3;
      const bool high = b.high[e % 32] >> (e / 32) & 1;
      y[e] = (d * float(int(scales[size_t(e / 16)]) - 32)) * float(high ? q : q - 4);
    }
  });
}

void decode_q4_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ4_K>(in, out, count, kSuperBlock, [](const BlockQ4_K& b, float* y) {
    const float d = b.d.value(), dmin = b.dmin.value();
    const ScalesAndMins s = unpack_scales_q4_k(b.scales);
    for (int j = 0; j < 8; ++j) {
      const float scale = d * float(s.scale[j]), min = dmin * float(s.min[j]);
      const uint8_t* codes = b.codes + 32 * (j / 2);
      const int shift = 4 * (j % 2);
      for (int l = 0; l < 32; ++l) y[32 * j + l] = scale * float(codes[l] >> shift & 15) - min;
    }
  });
}

void decode_q5_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ5_K>(in, out, count, kSuperBlock, [](const BlockQ5_K& b, float* y) {
    const float d = b.d.value(), dmin = b.dmin.value();
    const ScalesAndMins s = unpack_scales_q4_k(b.scales);
    for (int j = 0; j < 8; ++j) {
      const float scale = d * float(s.scale[j]), min = dmin * float(s.min[j]);
      const uint8_t* codes = b.codes + 32 * (j / 2);
      const int shift = 4 * (j % 2);
      for (int l = 0; l < 32; ++l) {
        const int q = (codes[l] >> shift & 15) | (b.fifth[l] >> j & 1) << 4;
        y[32 * j + l] = scale * float(q) - min;
      }
    }
  });
}

void decode_q6_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ6_K>(in, out, count, kSuperBlock, [](const BlockQ6_K& b, float* y) {
    const float d = b.d.value();
    for (int e = 0; e < kSuperBlock; ++e) {
      const int half = e / 128, quarter = e % 128 / 32, l = e % 32;
      const int low = b.low[64 * half + 32 * (quarter % 2) + l] >> (4 * (quarter / 2)) & 15;
      const int high = b.high[32 * half + l] >> (2 * quarter) & 3;
      y[e] = (d * float(b.scales[e / 16])) * float((low | high << 4) - 32);
    }
  });
}

void decode_q8_k(const std::byte* in, float* out, int64_t count) {
  for (int64_t i = 0; i < count; i += kSuperBlock, in += sizeof(BlockQ8_K)) {
    BlockQ8_K b;
    std::memcpy(&b, in, sizeof b);
    for (int e = 0; e < kSuperBlock; ++e) out[i + e] = float(b.codes[e]) * b.d;
  }
}

}  // namespace rlx::quant
