// Plan: squares of one vector by one vector are turned in registers: whole vectors of 4- and 8-byte elements,
// 16-byte vectors of smaller ones, whose shuffles every level has. The caller hands in strips of one line of
// `to` (64 bytes of rows) by many columns: all squares of a strip that fill one line come one after the
// other, and each line of `from` and of `to` passes once. Bound: memory, one read and one write. The other
// lines are plain loops that the compiler turns into vectors of the level.
#include "rlx/backend/cpu/kernels/copy.h"

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T, int size>
struct Square {
  typedef T Row __attribute__((vector_size(size)));
  static constexpr int n = size / int(sizeof(T));

  /// a[0] b[0] a[1] b[1] ... of the lower or upper halves.
  static RLX_INLINE Row interleave(Row a, Row b, bool upper) {
    Row low, high;
    for (int i = 0; i < n; ++i) {
      low[i] = T(i / 2 + i % 2 * n);
      high[i] = T(i / 2 + i % 2 * n + n / 2);
    }
    return upper ? __builtin_shuffle(a, b, high) : __builtin_shuffle(a, b, low);
  }

  /// v[i][j] <-> v[j][i]: a perfect shuffle of the rows, repeated log2(n) times.
  static RLX_INLINE void transpose(Row (&v)[n]) {
#pragma GCC unroll 4
    for (int step = 1; step < n; step *= 2) {
      Row t[n];
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i) {
        t[2 * i] = interleave(v[i], v[i + n / 2], false);
        t[2 * i + 1] = interleave(v[i], v[i + n / 2], true);
      }
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) v[i] = t[i];
    }
  }
};

template <class T>
void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows, int64_t columns,
               bool streaming) {
  constexpr int size = sizeof(T) >= 4 ? kVectorBytes : 16;
  using S = Square<T, size>;
  const int64_t whole_rows = rows / S::n * S::n, whole_columns = columns / S::n * S::n;
  const auto squares = [&](auto put) {
    for (int64_t j = 0; j < whole_columns; j += S::n) {
      for (int64_t i = 0; i < whole_rows; i += S::n) {
        typename S::Row v[S::n];
#pragma GCC unroll 16
        for (int r = 0; r < S::n; ++r) v[r] = load_bytes<typename S::Row>(from + (i + r) * from_stride + j);
        S::transpose(v);
#pragma GCC unroll 16
        for (int c = 0; c < S::n; ++c) put(to + (j + c) * to_stride + i, v[c]);
      }
    }
  };
  if (streaming && size == 64) {
    squares([](T* p, auto v) {
      if constexpr (sizeof v == kVectorBytes) stream(reinterpret_cast<float*>(p), (F32)v);
    });
    stream_fence();
  } else {
    squares([](T* p, auto v) { std::memcpy(p, &v, sizeof v); });
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

// One element of 16 bytes is a vector already.
template <>
void transpose(const Bytes16* from, int64_t from_stride, Bytes16* to, int64_t to_stride, int64_t rows,
               int64_t columns, bool) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

template <class T>
void gather(const T* from, int64_t from_stride, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * from_stride];
}
template <class T>
void reverse(const T* __restrict from, T* __restrict to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
}
template <class T>
void fill(T value, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

void stream_bytes(const void* from, void* to, int64_t bytes) {
  const char* f = static_cast<const char*>(from);
  char* t = static_cast<char*>(to);
  const int64_t start = int64_t(-reinterpret_cast<uintptr_t>(to) & (kVectorBytes - 1));
  const int64_t head = start < bytes ? start : bytes;
  std::memcpy(t, f, size_t(head));
  int64_t i = head;
  for (; i + kVectorBytes <= bytes; i += kVectorBytes) {
    stream(reinterpret_cast<float*>(t + i), load_bytes<F32>(f + i));
  }
  std::memcpy(t + i, f + i, size_t(bytes - i));
  stream_fence();
}

template <class T>
constexpr LineKernels<T> lines() {
  return {transpose<T>, gather<T>, reverse<T>, fill<T>};
}

}  // namespace

CopyKernels copy_kernels() {
  return {lines<uint8_t>(),  lines<uint16_t>(), lines<uint32_t>(),
          lines<uint64_t>(), lines<Bytes16>(),  stream_bytes};
}

}  // namespace rlx::cpu::RLX_ISA
