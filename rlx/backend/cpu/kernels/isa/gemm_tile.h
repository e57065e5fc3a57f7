// The tile of the matrix product, for kernels that build on it.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// Sums held in registers: 28 of AVX-512's 32, 24 of NEON's 32, 12 of 16 elsewhere; two vectors a row.
inline constexpr int kTileSums = kRegisters == 32 ? (kVectorBytes == 64 ? 28 : 24) : 12;
inline constexpr int kTileRows = kTileSums / 2;

/// sums[r * row_stride + j] (+)= sum over i < k of a[i * a_step + r] * b[i * 2 * kLanes + j] for r < rows <=
/// kTileRows and j < 2 * kLanes; `first` overwrites.
void tile_f32(int rows, const float* a, int64_t a_step, const float* b, int64_t k, float* sums,
              int64_t row_stride, bool first);

}  // namespace rlx::cpu::RLX_ISA
