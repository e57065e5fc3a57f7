// The short causal convolution of state-space models: each channel along the sequence, channels innermost.
//   y[b, s, c] = sum over k < K of z[b, s + k, c] w[c, k],   z = left[b, K-1, c] followed by x[b, S, c]
// All arrays are contiguous, f32. Results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

struct CausalConv {
  int64_t batch = 1, length = 0, channels = 0, kernel = 1;
  const float* x = nullptr;     // [B, S, C]
  const float* left = nullptr;  // [B, K-1, C], null for zeros
  const float* w = nullptr;     // [C, K]
  float* y = nullptr;           // [B, S, C]
};
size_t causal_conv_workspace(const CausalConv&, int threads);
void causal_conv(Team, const CausalConv&, std::byte* workspace);

/// Gradients in x, left and w; null drops one. forward.y is not read.
struct CausalConvBackward {
  CausalConv forward;
  const float* dy = nullptr;
  float* dx = nullptr;
  float* dleft = nullptr;
  float* dw = nullptr;
};
size_t causal_conv_backward_workspace(const CausalConvBackward&, int threads);
void causal_conv_backward(Team, const CausalConvBackward&, std::byte* workspace);

struct CausalConvKernels {
  /// y[i] = sum over k < count of rows[k][i] w[k n + i], i < n.
  void (*weighted)(const float* const* rows, const float* w, int64_t count, float* y, int64_t n);
  /// y[i] += a[i] b[i], i < n.
  void (*add_product)(const float* a, const float* b, float* y, int64_t n);
};

}  // namespace rlx::cpu
