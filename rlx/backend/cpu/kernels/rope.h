// Rotary position encoding by tables of cosines and sines.
//
// Each pair (a, b) of the first `rotated` lanes of a head becomes (a c - b s, b c + a s) with c, s entry i of
// row `position` of the tables for pair i; the other lanes pass. The gradient is the rotation by the opposite
// angle: `inverse`.
#pragma once

#include "rlx/backend/cpu/kernels/head_strides.h"
#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

struct Rope {
  int64_t batch = 1, heads = 1, length = 0, head_dim = 0;
  int64_t rotated = 0;       // even, at most head_dim
  bool interleaved = false;  // pairs (2i, 2i + 1); otherwise (i, i + rotated / 2)
  bool inverse = false;
  DType dtype = DType::f32;  // of x, y and the tables: f32, f16, bf16; computed in f32
  const void* x = nullptr;
  HeadStrides x_strides;
  void* y = nullptr;  // may be x
  HeadStrides y_strides;
  const void* cos = nullptr;  // [table_rows, rotated / 2], rows table_stride apart
  const void* sin = nullptr;
  int64_t table_rows = 0, table_stride = 0;
  const int64_t* positions = nullptr;  // [batch, length], rows position_stride apart; null: the row itself
  int64_t position_stride = 0;         // 0: the same for the whole batch
};

/// Throws a user error where a position lies outside the tables.
void rope(Team, const Rope&);

// ---- what a level provides ----

struct RopeKernels {
  /// All heads of rows [begin, end) of batch * length. `streaming`: past the caches, where y is f32, not x,
  /// and made of whole aligned lines.
  void (*rows)(const Rope&, int64_t begin, int64_t end, bool streaming);
};

}  // namespace rlx::cpu
