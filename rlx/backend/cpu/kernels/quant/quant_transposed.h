// Products with block-quantised weights transposed: y[m, k] = x[m, n] w[n, k], w in the packed form of quant_product.h.
//
// Weights are decoded to f32, some rows at a time (at most about four megabytes), and multiplied by gemm; y gathers the parts in the order of the rows. Cuts
// depend on the shape alone, so results are bit-equal between numbers of threads at one level.
#pragma once

#include "rlx/backend/cpu/kernels/quant/quant_product.h"

namespace rlx::cpu {

struct QuantTransposed {
  int64_t m = 0, n = 0, k = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const QuantMatrix* w = nullptr;  // [n, k]
  float* y = nullptr;
  int64_t y_stride = 0;
};

/// Bytes of scratch memory; 64-byte alignment. Reads sizes only.
size_t quant_transposed_workspace(const QuantTransposed&, int threads);
void quant_transposed(Team, const QuantTransposed&, std::byte* workspace);

}  // namespace rlx::cpu
