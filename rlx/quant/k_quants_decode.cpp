#include <cstring>

#include "rlx/quant/blocks.h"
#include "rlx/quant/k_quants.h"

namespace rlx::quant {

// The loops over the 16 elements with one scale know what is shifted how: compilers make vectors of them.
constexpr int kGroups = kSuperBlock / 16;

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
    for (int g = 0; g < kGroups; ++g) {
      const uint8_t* codes = b.codes + 32 * (g / 8) + 16 * (g % 2);
      const int shift = g % 8 / 2 * 2;
      const float scale = d * float(b.scales[g] & 15), min = dmin * float(b.scales[g] >> 4);
      for (int l = 0; l < 16; ++l) y[16 * g + l] = scale * float(codes[l] >> shift & 3) - min;
    }
  });
}

void decode_q3_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ3_K>(in, out, count, kSuperBlock, [](const BlockQ3_K& b, float* y) {
    const float d = b.d.value();
    const auto scales = unpack_scales_q3_k(b.scales);
    for (int g = 0; g < kGroups; ++g) {
      const uint8_t *codes = b.codes + 32 * (g / 8) + 16 * (g % 2), *high = b.high + 16 * (g % 2);
      const int shift = g % 8 / 2 * 2;
      const float scale = d * float(int(scales[size_t(g)]) - 32);
      for (int l = 0; l < 16; ++l) {
        const int q = (codes[l] >> shift & 3) | (high[l] >> (g / 2) & 1) << 2;
        y[16 * g + l] = scale * float(q - 4);
      }
    }
  });
}

void decode_q4_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ4_K>(in, out, count, kSuperBlock, [](const BlockQ4_K& b, float* y) {
    const float d = b.d.value(), dmin = b.dmin.value();
    const ScalesAndMins s = unpack_scales_q4_k(b.scales);
    for (int j = 0; j < 8; j += 2, y += 64) {
      const float scale[2] = {d * float(s.scale[j]), d * float(s.scale[j + 1])};
      const float min[2] = {dmin * float(s.min[j]), dmin * float(s.min[j + 1])};
      const uint8_t* codes = b.codes + 16 * j;
      for (int l = 0; l < 32; ++l) y[l] = scale[0] * float(codes[l] & 15) - min[0];
      for (int l = 0; l < 32; ++l) y[32 + l] = scale[1] * float(codes[l] >> 4) - min[1];
    }
  });
}

void decode_q5_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ5_K>(in, out, count, kSuperBlock, [](const BlockQ5_K& b, float* y) {
    const float d = b.d.value(), dmin = b.dmin.value();
    const ScalesAndMins s = unpack_scales_q4_k(b.scales);
    for (int j = 0; j < 8; j += 2, y += 64) {
      const float scale[2] = {d * float(s.scale[j]), d * float(s.scale[j + 1])};
      const float min[2] = {dmin * float(s.min[j]), dmin * float(s.min[j + 1])};
      const uint8_t* codes = b.codes + 16 * j;
      const auto fifth = [&](int l, int at) { return (b.fifth[l] >> at & 1) << 4; };
      for (int l = 0; l < 32; ++l) y[l] = scale[0] * float((codes[l] & 15) | fifth(l, j)) - min[0];
      for (int l = 0; l < 32; ++l) y[32 + l] = scale[1] * float(codes[l] >> 4 | fifth(l, j + 1)) - min[1];
    }
  });
}

void decode_q6_k(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ6_K>(in, out, count, kSuperBlock, [](const BlockQ6_K& b, float* y) {
    const float d = b.d.value();
    for (int g = 0; g < kGroups; ++g) {
      const int half = g / 8, quarter = g % 8 / 2;
      const uint8_t* low = b.low + 64 * half + 32 * (quarter % 2) + 16 * (g % 2);
      const uint8_t* high = b.high + 32 * half + 16 * (g % 2);
      const float scale = d * float(b.scales[g]);
      for (int l = 0; l < 16; ++l) {
        const int q = (low[l] >> (4 * (quarter / 2)) & 15) | (high[l] >> (2 * quarter) & 3) << 4;
        y[16 * g + l] = scale * float(q - 32);
      }
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
