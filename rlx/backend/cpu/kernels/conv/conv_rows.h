// A convolution by output rows: tiles of neighbouring outputs of one row times panels of output channels.
// What one level provides for it; conv_rows.cpp cuts the work into tiles.
#pragma once

#include <cstdint>

#include "rlx/backend/cpu/kernels/conv/conv.h"

namespace rlx::cpu {

/// One tap of a tile: where its first input and its weights lie. An input column outside the source holds
/// zeros; `skip` says that the first (1) or the last (2) output meets only such and may be left out.
struct ConvRowTap {
  int64_t source, weights;
  int skip;
};

/// sums[j][v] = start[j][v] + sum over taps t, channels c of
///   source[t.source + c plane + j step] weights[t.weights + c panel + v],  j < positions, v < panel
/// where panel = vectors * lanes.
struct ConvRowTile {
  const float* source = nullptr;
  int64_t plane = 0, channels = 0, step = 1;
  const ConvRowTap* taps = nullptr;
  int64_t tap_count = 0;
  const float* weights = nullptr;
  int positions = 0, vectors = 0;
  const float* start = nullptr;
  int64_t start_stride = 0;  // 0: the same for all positions
  float* sums = nullptr;     // [positions][panel]
  // The last block of channels: out[v out_stride + j] = sums[j][v] for v < out_channels instead; the buffer
  // of sums is then scratch.
  float* out = nullptr;
  int64_t out_stride = 0, out_channels = 0;
  const float* residual = nullptr;  // added to them, lies as out does
  bool relu = false;
};

/// Rows of a source put side by side with zeros around them:
///   out[r out_row + c width + left + i] = source[c plane + r row + i] for i < length, zero before and
///   behind.
struct ConvFrame {
  const float* source = nullptr;
  int64_t plane = 0, row = 0;
  int64_t channels = 0, rows = 0;
  int64_t left = 0, length = 0, width = 0;
  float* out = nullptr;
  int64_t out_row = 0;
};

struct ConvRowKernels {
  int positions;  // most of a tile with two vectors; half of them with four
  int lanes;
  void (*tile)(const ConvRowTile&);
  void (*frame)(const ConvFrame&);
};

/// For plans whose geometry has by_rows.used.
size_t conv_rows_workspace(const Conv&, int threads);
void conv_rows(Team, const Conv&, std::byte* workspace);

}  // namespace rlx::cpu
