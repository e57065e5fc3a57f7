// Plan: neighbouring runs go side by side, their carries in an array of up to 32 KiB that the compiler's vectors
// pass over for every step. Runs along contiguous memory cannot: eight of them (rows, or slices of one row)
// are advanced in turn, so that eight additions are under way where one would wait for the last. Bound:
// memory for columns; for rows one addition a cycle.
#include "rlx/backend/cpu/kernels/cumulative.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

// The type of the carry.
template <class T>
struct Carried {
  using Type = double;
};
template <>
struct Carried<int32_t> {
  using Type = int64_t;
};
template <>
struct Carried<int64_t> {
  using Type = int64_t;
};
// Integers wrap, and only unsigned ones may.
template <class A>
struct Unsigned {
  using Type = A;
};
template <>
struct Unsigned<int64_t> {
  using Type = uint64_t;
};

template <Running kind, class A>
RLX_INLINE bool takes(A v, A carry) {
  const bool wins = kind == Running::max ? v > carry : v < carry;
  return wins | ((v != v) & (carry == carry));
}
template <Running kind, class A>
RLX_INLINE A combine(A carry, A v) {
  using U = typename Unsigned<A>::Type;
  if constexpr (kind == Running::sum) return A(U(carry) + U(v));
  if constexpr (kind == Running::prod) return A(U(carry) * U(v));
  return takes<kind>(v, carry) ? v : carry;
}

template <class A>
RLX_INLINE A& value_of(RunningCarry& c) {
  if constexpr (A(1) / 2 == 0) {
    return c.integer;
  } else {
    return c.real;
  }
}

template <class T, Running kind>
RLX_INLINE void some_rows(const T* x, T* y, int32_t* indices, int64_t row_stride, int rows, int64_t n,
                          int64_t step, bool exclusive, int64_t first, int64_t first_stride,
                          RunningCarry* carry) {
  using A = typename Carried<T>::Type;
  A acc[8];
  int64_t at[8];
  for (int r = 0; r < rows; ++r) acc[r] = value_of<A>(carry[r]), at[r] = carry[r].index;
  const int64_t direction = step < 0 ? -1 : 1;
  for (int64_t k = 0; k < n; ++k) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const int64_t place = r * row_stride + k * step;
      const A v = A(x[place]), before = acc[r];
      if (indices != nullptr)
        at[r] = takes<kind>(v, before) ? first + r * first_stride + k * direction : at[r];
      acc[r] = combine<kind>(before, v);
      if (y != nullptr) y[place] = T(exclusive ? before : acc[r]);
      if (indices != nullptr && y != nullptr) indices[place] = int32_t(at[r]);
    }
  }
  for (int r = 0; r < rows; ++r) value_of<A>(carry[r]) = acc[r], carry[r].index = at[r];
}

template <class T, Running kind>
void run_rows(const void* from, void* to, int32_t* indices, int64_t row_stride, int64_t rows, int64_t n,
              int64_t step, bool exclusive, int64_t first, int64_t first_stride, RunningCarry* carry) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (int64_t r = 0; r < rows; r += 8) {
    const int64_t at = r * row_stride;
    T* out = y != nullptr ? y + at : nullptr;
    int32_t* where = indices != nullptr ? indices + at : nullptr;
    const int64_t start = first + r * first_stride;
    if (rows - r >= 8 && where == nullptr) {
      some_rows<T, kind>(x + at, out, nullptr, row_stride, 8, n, step, exclusive, start, first_stride,
                         carry + r);
    } else {
      const int left = rows - r < 8 ? int(rows - r) : 8;
      some_rows<T, kind>(x + at, out, where, row_stride, left, n, step, exclusive, start, first_stride,
                         carry + r);
    }
  }
}

template <class A, Running kind>
constexpr A neutral() {
  if constexpr (kind == Running::sum) return 0;
  if constexpr (kind == Running::prod) return 1;
  if constexpr (A(1) / 2 == 0) return kind == Running::max ? INT64_MIN : INT64_MAX;
  return A(kind == Running::max ? -__builtin_inf() : __builtin_inf());
}

template <class T, Running kind>
void run_columns(const void* from, void* to, int32_t* indices, int64_t width, int64_t n, int64_t step,
                 bool exclusive, int64_t first) {
  using A = typename Carried<T>::Type;
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  A acc[kRunningWidth];
  int32_t at[kRunningWidth];
  for (int64_t i = 0; i < width; ++i) acc[i] = neutral<A, kind>(), at[i] = int32_t(first);
  const int64_t direction = step < 0 ? -1 : 1;
  for (int64_t k = 0; k < n; ++k) {
    const T* u = x + k * step;
    T* v = y + k * step;
    if (indices != nullptr) {
      const int32_t index = int32_t(first + k * direction);
      int32_t* where = indices + k * step;
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) {
        const A value = A(u[i]);
        const bool better = takes<kind>(value, acc[i]);
        acc[i] = better ? value : acc[i];
        at[i] = better ? index : at[i];
        v[i] = T(acc[i]);
        where[i] = at[i];
      }
    } else if (exclusive) {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) {
        const A next = combine<kind>(acc[i], A(u[i]));
        v[i] = T(acc[i]);
        acc[i] = next;
      }
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i) {
        acc[i] = combine<kind>(acc[i], A(u[i]));
        v[i] = T(acc[i]);
      }
    }
  }
}

template <class T, Running kind>
constexpr RunningKernels kernels() {
  return {run_rows<T, kind>, run_columns<T, kind>};
}
template <int... k>
CumulativeKernels make(Indices<k...>) {
  return {{kernels<float, Running(k)>()...},
          {kernels<double, Running(k)>()...},
          {kernels<int32_t, Running(k)>()...},
          {kernels<int64_t, Running(k)>()...}};
}

}  // namespace

CumulativeKernels cumulative_kernels() { return make(MakeIndices<kRunningCount>()); }

}  // namespace rlx::cpu::RLX_ISA
