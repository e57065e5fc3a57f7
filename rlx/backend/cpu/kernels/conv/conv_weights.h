// The gradient of convolution weights with input channels in the lanes. What one level provides for it;
// conv_weights.cpp cuts the work into tiles.
#pragma once

#include <cstdint>

#include "rlx/backend/cpu/kernels/conv/conv.h"

namespace rlx::cpu {

/// sums[r][v] += sum over runs j < runs and i < length of
///   dy[r plane + j dy_run + i] x[j x_run + i x_step + v],  r < rows, v < vectors * lanes
struct ConvTurnedTile {
  const float* dy = nullptr;
  int64_t plane = 0, dy_run = 0;
  const float* x = nullptr;
  int64_t x_run = 0, x_step = 0;
  int64_t runs = 0, length = 0;
  int rows = 0, vectors = 0;
  float* sums = nullptr;  // [rows][vectors * lanes]
};

struct ConvTurnedKernels {
  int rows, lanes;  // of a tile; a tile has one or two vectors of lanes
  void (*tile)(const ConvTurnedTile&);
  /// out[i][r] = from[r stride + i] for r < rows, zero for rows <= r < vectors * lanes; i < n.
  void (*turn)(const float* from, int64_t stride, int64_t rows, int64_t n, int vectors, float* out);
  /// out[c taps + t] = sums[t stride + c] for c < channels, t < taps.
  void (*interleave)(const float* sums, int64_t stride, int64_t channels, int64_t taps, float* out);
};

/// For plans of backward_weights whose geometry has turned.used.
size_t conv_turned_workspace(const Conv&, int threads);
void conv_turned(Team, const Conv&, std::byte* workspace);

}  // namespace rlx::cpu
