// The workloads of bench/cpu_region.cpp as loops written by hand over the same vector functions, without fused
// multiply-adds: the arithmetic of the regions, in one function each.
#pragma once

#include <cstdint>

namespace rlx::bench {

/// Rows [0, rows) of `columns` elements; arguments as the region has them. `stream`: results past the caches.
using Loop = void (*)(char* const* a, int64_t rows, int64_t columns, bool stream);

struct Loops {
  Loop bias_gelu, swiglu, adamw, layer_norm, softmax, chain, bf16_rms, transpose, gelu_gradient;
};

/// Compiled for each; the machine must have the level.
Loops region_loops_avx2();
Loops region_loops_avx512();

}  // namespace rlx::bench
