// Resampling of the last one to three axes of [planes, size..] to [planes, to..], f32, and its transpose.
// On each axis, with t the place of output o:
//   nearest  t = floor(o size / to)
//   linear   between the neighbours of t = (o + 1/2) size / to - 1/2, cut to the axis, or of
//            t = o (size - 1) / (to - 1) with align_corners
// Axes are done one after the other, first to last. Where t falls on an element, its neighbour plays no part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/kernels/conv.h"
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
size_t resize_workspace(const Resize&);
void resize(Team, const Resize&, std::byte* workspace);
/// dx[i] = sum over o of the weight with which resize takes x[i] into y[o], times dy[o].
void resize_backward(Team, const Resize&, std::byte* workspace);

struct ResizeKernels {
  /// y = (1 - part) a + part b
  void (*blend)(const float* a, const float* b, float part, float* y, int64_t n);
  /// y += weight x
  void (*add_scaled)(const float* x, float weight, float* y, int64_t n);
};

}  // namespace rlx::cpu
