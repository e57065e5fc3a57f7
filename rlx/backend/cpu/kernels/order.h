// Putting elements in order: sort, the k largest, where the largest is, and drawing a token.
//
// The order is total: NaN is above everything and equal to NaN, -0 equals 0; equal elements keep their order,
// also when descending. Every result is determined by it, so nothing depends on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

/// Along the middle axis of x [outer, n, inner]: values in order and the places they came from, i32.
struct Sort {
  DType dtype = DType::f32;  // bool, an integer, f16, bf16, f32 or f64
  int64_t outer = 1, n = 0, inner = 1;
  bool descending = false;
  const void* x = nullptr;
  void* values = nullptr;      // null to drop them
  int32_t* indices = nullptr;  // null to drop them
};
size_t sort_workspace(const Sort&, int threads);
void sort(Team, const Sort&, std::byte* workspace);

/// The first k of sort descending: values and places [outer, k, inner]; 0 <= k <= n.
struct TopK {
  DType dtype = DType::f32;
  int64_t outer = 1, n = 0, inner = 1, k = 1;
  const void* x = nullptr;
  void* values = nullptr;
  int32_t* indices = nullptr;
};
size_t top_k_workspace(const TopK&, int threads);
void top_k(Team, const TopK&, std::byte* workspace);

/// A token for each row of logits: of the top_k largest (0: all), with p = softmax(logits / temperature), the
/// shortest prefix of descending p whose sum reaches top_p is kept; the token is the first, in order of the
/// vocabulary, with u (sum of p kept) < sum of p kept up to it, where row r draws u from word r of the stream
/// (key, counter). Temperature 0 takes the largest. A row with NaN, or with no finite logit, gives 0.
struct SampleTokens {
  int64_t rows = 0, n = 0, stride = 0;  // n >= 1
  const float* logits = nullptr;
  int64_t top_k = 0;
  double top_p = 1, temperature = 1;
  uint64_t key = 0, counter = 0;
  int32_t* tokens = nullptr;
};
size_t sample_tokens_workspace(const SampleTokens&, int threads);
void sample_tokens(Team, const SampleTokens&, std::byte* workspace);

struct OrderKernels {
  /// The places i < n where x[i] <= threshold is false; `places` has room for n + 16.
  int64_t (*above)(const float* x, int64_t n, float threshold, int32_t* places);
  int64_t (*argmax)(const float* x, int64_t n);  // the first; NaN is the largest
  void (*divide)(const float* x, float divisor, float* y, int64_t n);
  void (*exponentials)(const float* x, float top, float* y, int64_t n);  // y = exp(x - top)
  double (*sum)(const float* x, int64_t n);                              // in f64
};

}  // namespace rlx::cpu
