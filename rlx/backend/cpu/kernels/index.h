// Rows picked and written by index: gather, take-along, embedding, scatter.
//
// Indices are i32 or i64. Out of range they are an error that names the first such element, or are moved to
// the nearest end (clamp); nothing is written before all have been checked. Updates of a row are applied in
// their order whatever the number of threads, so results are bit-equal between thread counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class IndexMode : uint8_t { error, clamp };

struct Indices {
  const void* data = nullptr;
  DType dtype = DType::i32;  // i32 or i64
  IndexMode mode = IndexMode::error;
};

/// y[b, o, k, i] = table[b, o, indices[b, k], i]: table [batch, outer, size, inner], indices [batch, count].
struct Gather {
  DType dtype = DType::f32;  // any
  int64_t batch = 1, outer = 1, size = 0, inner = 1, count = 0;
  const void* table = nullptr;
  Indices indices;
  void* y = nullptr;
};
void gather(Team, const Gather&);

/// y[o, k, i] = x[o, indices[o, k, i], i]: x [outer, size, inner], indices and y [outer, count, inner].
struct TakeAlong {
  DType dtype = DType::f32;  // any
  int64_t outer = 1, size = 0, inner = 1, count = 0;
  const void* x = nullptr;
  Indices indices;
  void* y = nullptr;
};
void take_along(Team, const TakeAlong&);

/// y[k] = table[indices[k]] as f32: table [size, n] of f32, f16 or bf16, rows `stride` elements apart.
struct Embedding {
  DType dtype = DType::f32;
  int64_t size = 0, n = 0, stride = 0, count = 0;
  const void* table = nullptr;
  Indices indices;
  float* y = nullptr;  // [count, n]
};
void embedding(Team, const Embedding&);

enum class ScatterKind : uint8_t { set, add, max, min };

/// y = base, then for u = 0, 1, ...: y[b, indices[b, u], i] = kind(itself, updates[b, u, i]). y and base
/// [batch, rows, inner], updates [batch, count, inner]. set: the last update of a row wins; max, min: NaN
/// wins. Sums of f16 and bf16 are taken in f32 and rounded once. With no base this is the gradient of a
/// gather or an embedding (kind add).
struct Scatter {
  ScatterKind kind = ScatterKind::set;
  DType dtype = DType::f32;  // set: any; add: numeric; max, min: numeric but c64
  int64_t batch = 1, rows = 0, inner = 1, count = 0;
  const void* base = nullptr;  // null for zeros; may be y
  Indices indices;
  const void* updates = nullptr;
  void* y = nullptr;
};
size_t scatter_workspace(const Scatter&, int threads);
void scatter(Team, const Scatter&, std::byte* workspace);

struct IndexKernels {
  void (*widen)(DType, const void* x, float* y, int64_t n);  // f16, bf16 -> f32
  /// y = kind(y, update) for n elements; add not for f16, bf16, c64.
  void (*combine)(ScatterKind, DType, void* y, const void* update, int64_t n);
  /// y = base + updates[first] + updates[next[first]] + ... for rows of n f16 or bf16, `next` ends with -1.
  void (*sum_chain)(DType, const void* base, const void* updates, const int32_t* next, int32_t first, void* y,
                    int64_t n);
};

}  // namespace rlx::cpu
