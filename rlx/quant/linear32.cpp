#include "rlx/quant/linear32.h"

#include "rlx/quant/blocks.h"

namespace rlx::quant {
namespace {

constexpr int kBlock = 32;

uint32_t read_bits(const uint8_t (&b)[4]) {
  return uint32_t(b[0]) | uint32_t(b[1]) << 8 | uint32_t(b[2]) << 16 | uint32_t(b[3]) << 24;
}

int nibble(const uint8_t* codes, int j) { return j < 16 ? codes[j] & 15 : codes[j - 16] >> 4; }

}  // namespace

void decode_q4_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ4_0>(in, out, count, kBlock, [](const BlockQ4_0& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(nibble(b.codes, j) - 8) * d;
  });
}

void decode_q4_1(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ4_1>(in, out, count, kBlock, [](const BlockQ4_1& b, float* y) {
    const float d = b.d.value(), m = b.m.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(nibble(b.codes, j)) * d + m;
  });
}

void decode_q5_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ5_0>(in, out, count, kBlock, [](const BlockQ5_0& b, float* y) {
    const float d = b.d.value();
    const uint32_t fifth = read_bits(b.fifth);
    for (int j = 0; j < kBlock; ++j) y[j] = float((nibble(b.codes, j) | int(fifth >> j & 1) << 4) - 16) * d;
  });
}

void decode_q5_1(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ5_1>(in, out, count, kBlock, [](const BlockQ5_1& b, float* y) {
    const float d = b.d.value(), m = b.m.value();
    const uint32_t fifth = read_bits(b.fifth);
    for (int j = 0; j < kBlock; ++j) y[j] = float(nibble(b.codes, j) | int(fifth >> j & 1) << 4) * d + m;
  });
}

void decode_q8_0(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ8_0>(in, out, count, kBlock, [](const BlockQ8_0& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(b.codes[j]) * d;
  });
}

void decode_q8_1(const std::byte* in, float* out, int64_t count) {
  decode_each<BlockQ8_1>(in, out, count, kBlock, [](const BlockQ8_1& b, float* y) {
    const float d = b.d.value();
    for (int j = 0; j < kBlock; ++j) y[j] = float(b.codes[j]) * d;
  });
}

}  // namespace rlx::quant
