// Plan: single rows; the plain loops vectorise by themselves, narrow floats go through f32. A chain of rows
// is summed four vectors of columns at a time, which stay in registers while the chain is walked.
#include "rlx/backend/cpu/kernels/index.h"

#include "rlx/backend/cpu/simd/narrow.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
void widen_row(const T* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i));
  if (i < n) store_n(y + i, load_n(x + i, int(n - i)), int(n - i));
}

void widen(DType dtype, const void* x, float* y, int64_t n) {
  if (dtype == DType::f16) {
    widen_row(static_cast<const F16*>(x), y, n);
  } else {
    widen_row(static_cast<const Bf16*>(x), y, n);
  }
}

/// NaN wins, the old one first; comparisons with NaN are false.
template <class T>
RLX_INLINE T larger(T a, T b) {
  return a != a ? a : (b > a || b != b ? b : a);
}
template <class T>
RLX_INLINE T smaller(T a, T b) {
  return a != a ? a : (b < a || b != b ? b : a);
}

/// Unsigned is the type in which T adds without overflow: itself for floats.
template <class T, class Unsigned>
void combine_row(ScatterKind kind, T* y, const T* u, int64_t n) {
  switch (kind) {
    case ScatterKind::set:
      for (int64_t i = 0; i < n; ++i) y[i] = u[i];
      break;
    case ScatterKind::add:
      for (int64_t i = 0; i < n; ++i) y[i] = T(Unsigned(Unsigned(y[i]) + Unsigned(u[i])));
      break;
    case ScatterKind::max:
      for (int64_t i = 0; i < n; ++i) y[i] = larger(y[i], u[i]);
      break;
    case ScatterKind::min:
      for (int64_t i = 0; i < n; ++i) y[i] = smaller(y[i], u[i]);
      break;
  }
}

template <class T>
void combine_narrow(ScatterKind kind, T* y, const T* u, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int lanes = int(n - i < kLanes ? n - i : kLanes);
    const F32 a = load_n(y + i, lanes), b = load_n(u + i, lanes);
    const F32 pick = kind == ScatterKind::max ? (b > a ? b : a) : (b < a ? b : a);
    store_n(y + i, a == a ? (b == b ? pick : b) : a, lanes);
  }
}

template <class T>
void combine_as(ScatterKind kind, void* y, const void* u, int64_t n) {
  combine_narrow(kind, static_cast<T*>(y), static_cast<const T*>(u), n);
}
template <class T, class Unsigned = T>
void combine_plain(ScatterKind kind, void* y, const void* u, int64_t n) {
  combine_row<T, Unsigned>(kind, static_cast<T*>(y), static_cast<const T*>(u), n);
}

void combine(ScatterKind kind, DType dtype, void* y, const void* u, int64_t n) {
  switch (dtype) {
    case DType::f32:
      return combine_plain<float>(kind, y, u, n);
    case DType::f64:
      return combine_plain<double>(kind, y, u, n);
    case DType::f16:
      return combine_as<F16>(kind, y, u, n);
    case DType::bf16:
      return combine_as<Bf16>(kind, y, u, n);
    case DType::u8:
      return combine_plain<uint8_t>(kind, y, u, n);
    case DType::i8:
      return combine_plain<int8_t, uint8_t>(kind, y, u, n);
    case DType::i16:
      return combine_plain<int16_t, uint16_t>(kind, y, u, n);
    case DType::i32:
      return combine_plain<int32_t, uint32_t>(kind, y, u, n);
    case DType::u32:
      return combine_plain<uint32_t>(kind, y, u, n);
    case DType::i64:
      return combine_plain<int64_t, uint64_t>(kind, y, u, n);
    default:
      return;  // refused by the caller
  }
}

template <class T, int vectors>
RLX_INLINE void sum_columns(const T* base, const T* updates, const int32_t* next, int32_t first, T* y,
                            int64_t n) {
  F32 sum[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) sum[v] = load(base + v * kLanes);
  for (int32_t u = first; u >= 0; u = next[u]) {
    const T* row = updates + u * n;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[v] = sum[v] + load(row + v * kLanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) store(y + v * kLanes, sum[v]);
}

template <class T>
void sum_chain_of(const T* base, const T* updates, const int32_t* next, int32_t first, T* y, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    sum_columns<T, 4>(base + i, updates + i, next, first, y + i, n);
  for (; i + kLanes <= n; i += kLanes) sum_columns<T, 1>(base + i, updates + i, next, first, y + i, n);
  if (i == n) return;
  const int lanes = int(n - i);
  F32 sum = load_n(base + i, lanes);
  for (int32_t u = first; u >= 0; u = next[u]) sum = sum + load_n(updates + u * n + i, lanes);
  store_n(y + i, sum, lanes);
}

void sum_chain(DType dtype, const void* base, const void* updates, const int32_t* next, int32_t first,
               void* y, int64_t n) {
  if (dtype == DType::f16) {
    sum_chain_of(static_cast<const F16*>(base), static_cast<const F16*>(updates), next, first,
                 static_cast<F16*>(y), n);
  } else {
    sum_chain_of(static_cast<const Bf16*>(base), static_cast<const Bf16*>(updates), next, first,
                 static_cast<Bf16*>(y), n);
  }
}

}  // namespace

IndexKernels index_kernels() { return {widen, combine, sum_chain}; }

}  // namespace rlx::cpu::RLX_ISA
