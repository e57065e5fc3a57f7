// Plan: squares of one vector by one vector are turned in registers: whole vectors of 4- and 8-byte elements,
// 16-byte vectors of smaller ones, whose shuffles every level has. The caller hands in strips of one line of
// `to` (64 bytes of rows) by many columns: all squares of a strip that fill one line come one after the
// other, and each line of `from` and of `to` passes once. Bound: memory, one read and one write. The other
// lines are plain loops that the compiler turns into vectors of the level.
#include "rlx/backend/cpu/kernels/copy.h"

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
struct RowOf;
template <>
struct RowOf<uint8_t> {
  using Type = U8x16;
};
template <>
struct RowOf<uint16_t> {
  using Type = U16x8;
};
template <>
struct RowOf<uint32_t> {
  using Type = F32;
};
template <>
struct RowOf<uint64_t> {
  using Type = F64;
};

template <class T>
void transpose_strip(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                     int64_t columns, bool streaming) {
  using Row = typename RowOf<T>::Type;
  constexpr int n = LanesOf<Row>::count;
  const int64_t whole_rows = rows / n * n, whole_columns = columns / n * n;
  const auto squares = [&](auto put) {
    for (int64_t j = 0; j < whole_columns; j += n) {
      for (int64_t i = 0; i < whole_rows; i += n) {
        Row v[n];
#pragma GCC unroll 16
        for (int r = 0; r < n; ++r) v[r] = load_bytes<Row>(from + (i + r) * from_stride + j);
        transpose(v);
#pragma GCC unroll 16
        for (int c = 0; c < n; ++c) put(to + (j + c) * to_stride + i, v[c]);
      }
    }
  };
  if (streaming && sizeof(Row) == 64) {
    squares([](T* p, Row v) {
      if constexpr (sizeof(Row) == 64) stream(reinterpret_cast<float*>(p), (F32)v);
    });
  } else {
    squares([](T* p, Row v) { std::memcpy(p, &v, sizeof v); });
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

// One element of 16 bytes is a vector already.
template <>
void transpose_strip(const Bytes16* from, int64_t from_stride, Bytes16* to, int64_t to_stride, int64_t rows,
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

void fence() { stream_fence(); }

template <class T>
constexpr LineKernels<T> lines() {
  return {transpose_strip<T>, gather<T>, reverse<T>, fill<T>};
}

}  // namespace

CopyKernels copy_kernels() {
  return {lines<uint8_t>(),
          lines<uint16_t>(),
          lines<uint32_t>(),
          lines<uint64_t>(),
          lines<Bytes16>(),
          stream_bytes,
          fence};
}

}  // namespace rlx::cpu::RLX_ISA
