// Operations on each row of a matrix [rows, n] of f32: norms, softmax, losses, and their derivatives.
//
// Rows are contiguous, row_stride elements apart. Sums over columns are taken per row in a fixed order; sums
// over rows (dgamma, dbeta) over a fixed number of slices. So results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class NormKind : uint8_t {
  layer,  // y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
  rms,    // y = x / sqrt(mean of squares + epsilon) * gamma
};

struct Norm {
  NormKind kind = NormKind::layer;
  int64_t rows = 0, n = 0;
  float epsilon = 1e-5f;
  float gamma_offset = 0;  // some RMS norms store gamma - 1
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* residual = nullptr;  // added to x first, x_stride apart; null for none
  float* sum = nullptr;             // x + residual, y_stride apart; null to drop it
  const float* gamma = nullptr;     // [n], null for ones
  const float* beta = nullptr;      // [n], null for zeros
  float* y = nullptr;
  int64_t y_stride = 0;
  float* mean = nullptr;  // [rows], for the backward pass; null to drop it
  float* inverse_deviation = nullptr;
};
/// y and sum may each be the memory of x or of the residual, but not of one and the same.
void norm(Team, const Norm&);

struct NormBackward {
  NormKind kind = NormKind::layer;
  int64_t rows = 0, n = 0;
  float epsilon = 1e-5f;
  float gamma_offset = 0;
  const float* x = nullptr;  // the input of the norm (with the residual)
  const float* gamma = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;      // null to drop it
  float* dgamma = nullptr;  // [n], null to drop it
  float* dbeta = nullptr;   // [n], null to drop it
  // All contiguous: stride n.
};
size_t norm_backward_workspace(const NormBackward&, int threads);
void norm_backward(Team, const NormBackward&, std::byte* workspace);

/// y = softmax(scale * x), scale > 0, or its logarithm. A row of -inf only gives NaN: 0 / 0.
struct Softmax {
  int64_t rows = 0, n = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  float scale = 1;
  bool logarithm = false;
};
void softmax(Team, const Softmax&);

/// dx = scale * y (dy - sum(y dy)), or scale * (dy - exp(y) sum(dy)) for the logarithm; contiguous rows.
struct SoftmaxBackward {
  int64_t rows = 0, n = 0;
  const float* y = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;
  float scale = 1;
  bool logarithm = false;
};
void softmax_backward(Team, const SoftmaxBackward&);

/// loss[i] = log(sum exp(x[i])) - x[i, target[i]], and dx = softmax(x) - onehot(target) times weight[i] when
/// asked for. A target equal to `ignored` gives loss 0 and gradient 0. Other targets must lie in [0, n).
struct CrossEntropy {
  int64_t rows = 0, n = 0;
  const float* x = nullptr;
  const int64_t* target = nullptr;
  int64_t ignored = -100;
  float* loss = nullptr;
  float* dx = nullptr;            // [rows, n], null to drop it; may be x
  const float* weight = nullptr;  // [rows], null for ones
};
void cross_entropy(Team, const CrossEntropy&);

/// Longest row whose softmax may be streamed: its exponentials lie on the stack. The same for the sum that is normalised.
inline constexpr int64_t kStreamedSoftmax = 4096, kStreamedNorm = 8192;

/// `streaming` writes y, and the sum, past the caches: they and their stride are then multiples of 64 bytes, and not read.
struct RowKernels {
  void (*norm)(const Norm&, int64_t begin, int64_t end, bool streaming);
  /// Adds its rows to dgamma[n], dbeta[n] (null to drop), which start at zero.
  void (*norm_backward)(const NormBackward&, int64_t begin, int64_t end, float* dgamma, float* dbeta);
  void (*softmax)(const Softmax&, int64_t begin, int64_t end, bool streaming);
  void (*softmax_backward)(const SoftmaxBackward&, int64_t begin, int64_t end);
  void (*cross_entropy)(const CrossEntropy&, int64_t begin, int64_t end);
  /// y[i] = sum of x[j * stride + i] over j < rows, i < width.
  void (*sum_rows)(const float* x, int64_t stride, int64_t rows, int64_t width, float* y);
};

}  // namespace rlx::cpu
