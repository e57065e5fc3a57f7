// Depthwise convolution of whole planes with a square kernel at stride 1: what one level provides, and the
// passes made of it.
#pragma once

#include <cstdint>

#include "rlx/backend/cpu/kernels/conv/conv.h"

namespace rlx::cpu {

/// y[o1, o2] = start + sum over k1, k2 of w[k1, k2] x[o1 + low1 + k1, o2 + low2 + k2], zeros outside x.
struct ConvPlane {
  const float* x = nullptr;
  int64_t height = 0, width = 0;
  int64_t low1 = 0, low2 = 0;
  int64_t y_height = 0, y_width = 0;
  const float* zeros = nullptr;  // a row of x
};

struct ConvPlaneKernels {
  /// Kernels 3 x 3, 5 x 5 and 7 x 7.
  void (*forward)(const ConvPlane&, int kernel, const float* w, float start, float* y);
  /// dw[k1, k2] += sum over o1, o2 of dy[o1, o2] x[..]; kernels 3 x 3 and 5 x 5.
  void (*weights)(const ConvPlane&, int kernel, const float* dy, float* dw);
};

/// For plans whose geometry has plane_kernel > 0.
size_t conv_planes_workspace(const Conv&, int threads);
void conv_planes(Team, const Conv&, std::byte* workspace);

}  // namespace rlx::cpu
