// An f16 or bf16 as it lies in a file: two little-endian bytes at any alignment.
#pragma once

#include <cstdint>

#include "rlx/base/float16.h"

namespace rlx::quant {

/// Two bytes of a block; block structs built from it have alignment 1 and can be laid over any mapped byte.
struct Half {
  uint8_t low, high;

  constexpr uint16_t bits() const { return uint16_t(low | high << 8); }
  constexpr float value() const { return f16_to_f32(bits()); }
  static constexpr Half of_bits(uint16_t bits) { return {uint8_t(bits), uint8_t(bits >> 8)}; }
  static constexpr Half of(float value) { return of_bits(f32_to_f16(value)); }
  /// As `of`, but a value beyond the f16 range becomes the largest finite one: a scale is never infinite.
  static constexpr Half saturated(float value) {
    return of(value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value);
  }
};

static_assert(sizeof(Half) == 2 && alignof(Half) == 1);

}  // namespace rlx::quant
