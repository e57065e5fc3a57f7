// How the groups of QuantMatrix lie in memory: for each block of the format, L rows together.
//
//   q4_0   16 code bytes as 4 words, each [L][4] | d [L] f16
//   q8_0   32 codes + 128 as 8 words | d [L]
//   q4_k   128 code bytes as 32 words | scales [8][L] u8 | mins [8][L] u8 | d [L] | dmin [L]
//   q6_k   128 low bytes as 32 words | 64 high bytes as 16 words | scales [16][L] i8 | d [L]
#pragma once

#include <cstdint>

#include "rlx/backend/cpu/kernels/quant_product.h"

namespace rlx::cpu {

struct QuantLayout {
  int elements;     // per block
  int words;        // of four bytes of codes, per row
  int scale_bytes;  // bytes of small scales, per row
  int halves;       // f16 numbers, per row

  constexpr int64_t bytes_per_row() const { return 4 * words + scale_bytes + 2 * halves; }
};

constexpr QuantLayout quant_layout(QuantKind kind) {
  switch (kind) {
    case QuantKind::q4_0:
      return {32, 4, 0, 1};
    case QuantKind::q8_0:
      return {32, 8, 0, 1};
    case QuantKind::q4_k:
      return {256, 32, 16, 2};
    case QuantKind::q6_k:
      return {256, 48, 16, 1};
  }
  return {};
}

}  // namespace rlx::cpu
