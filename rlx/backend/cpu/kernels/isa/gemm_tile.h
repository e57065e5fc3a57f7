// The tile of a matrix product whose sums stay in registers, for kernels made of many small products.
#pragma once

#include <cstddef>

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// Sums held in registers: 28 of AVX-512's 32, 24 of NEON's 32, 12 of 16 elsewhere; two vectors a row.
inline constexpr int kTileSums = kRegisters == 32 ? (kVectorBytes == 64 ? 28 : 24) : 12;
inline constexpr int kTileRows = kTileSums / 2;
inline constexpr int kTileColumns = 2 * kLanes;

/// c[r * c_stride + j] (+)= sum over i < k of a[i * a_step + r] * b[i * b_step + j]
/// for r < rows and j < kTileColumns, any number of rows; `first` overwrites c.
void tile_f32(int64_t rows, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k,
              float* c, int64_t c_stride, bool first);

/// The same with c[r][j] = keep * c[r][j] + the sum.
void fading_tile_f32(int64_t rows, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k,
                     float* c, int64_t c_stride, float keep);

/// The same as tile_f32 with a[r * kTileColumns + i]: A is itself a panel, its rows kTileColumns apart.
void tile_of_panel_f32(int64_t rows, const float* a, const float* b, int64_t b_step, int64_t k, float* c,
                       int64_t c_stride, bool first);

/// out[i][0 .. count) = word i of rows 0 .. count, for i < words and count <= kTileRows; a word is any four
/// bytes.
void pack_words(const std::byte* rows, int64_t row_bytes, int64_t count, int64_t words, float* out);

}  // namespace rlx::cpu::RLX_ISA
