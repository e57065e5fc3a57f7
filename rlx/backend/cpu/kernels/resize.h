// Resampling of the last one to three axes of [planes, size..] to [planes, to..], f32, and its transpose.
// On each axis, with t the place of output o:
//   nearest  t = floor(o size / to)
//   linear   between the neighbours of t = (o + 1/2) size / to - 1/2, cut to the axis, or of
//            t = o (size - 1) / (to - 1) with align_corners
// Axes are done one after the other, first to last. Where t falls on an element, its neighbour plays no part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/kernels/conv/conv.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class ResizeMode : uint8_t { nearest, linear };

struct Resize {
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;
  int64_t planes = 1;
  // Fewer axes than three: leave the first ones as they are.
  Extents size{1, 1, 1}, to{1, 1, 1};
  const float* x = nullptr;  // [planes, size..]; backward: dy, [planes, to..]
  float* y = nullptr;        // [planes, to..]; backward: dx, [planes, size..]
};
size_t resize_workspace(const Resize&, int threads);
void resize(Team, const Resize&, std::byte* workspace);
/// dx[i] = sum over o of the weight with which resize takes x[i] into y[o], times dy[o].
void resize_backward(Team, const Resize&, std::byte* workspace);

/// Output o is (1 - part) x[low] + part x[high]; x[low] alone where part is 0.
struct ResizeTap {
  int64_t low, high;
  float part;
};

/// One axis of a block: x is [from, inner], y is [to, inner]. Backward, taps belong to the elements of x.
struct ResizeAxis {
  const ResizeTap* taps;
  int64_t from, to;
  bool backward;
};
struct ResizeKernels {
  void (*along)(const ResizeAxis&, const float* x, float* y, int64_t inner);
  /// Up to kResizeRows rows of the last axis, x [rows, from] and y [rows, to], through `scratch` of
  /// kResizeRows (from + to) floats.
  void (*last)(const ResizeAxis&, const float* x, float* y, int64_t rows, float* scratch);
};
inline constexpr int64_t kResizeRows = 16;

}  // namespace rlx::cpu
