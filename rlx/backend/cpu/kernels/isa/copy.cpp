// Plan: squares of one vector by one vector are turned in registers: whole vectors of 4- and 8-byte elements,
// 16-byte vectors of smaller ones, whose shuffles every level has; elements of 16 bytes are moved one by one.
// The caller hands in strips of a few lines of `to` by many columns: all squares of a strip that lie below
// each other come one after the other, so that each line of `from` passes once and the lines of `to` that are
// neighbours are written together. Past the caches a line must be written whole: squares narrower than a line
// are put together in a buffer in L1 first. Bound: memory, one read and one write. The other lines are plain
// loops that the compiler turns into vectors of the level.
#include "rlx/backend/cpu/kernels/copy.h"

#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int64_t kLine = 64, kStrip = LineKernels<uint8_t>::kStripBytes;

// A square of n x n elements: load it, turn it, put(column of `from`, vector of one row of `to`).
template <class T>
struct Square;
template <class T, class Row>
struct VectorSquare {
  static constexpr int n = LanesOf<Row>::count;
  template <class Put>
  RLX_INLINE static void turn(const T* from, int64_t from_stride, Put put) {
    Row v[n];
#pragma GCC unroll 16
    for (int r = 0; r < n; ++r) v[r] = load_bytes<Row>(from + r * from_stride);
    transpose(v);
#pragma GCC unroll 16
    for (int c = 0; c < n; ++c) put(c, v[c]);
  }
};
template <>
struct Square<uint8_t> : VectorSquare<uint8_t, U8x16> {};
template <>
struct Square<uint16_t> : VectorSquare<uint16_t, U16x8> {};
template <>
struct Square<uint32_t> : VectorSquare<uint32_t, F32> {};
template <>
struct Square<uint64_t> : VectorSquare<uint64_t, F64> {};
template <>
struct Square<Bytes16> {
  static constexpr int n = 4;
  struct Row {
    Bytes16 element[n];
  };
  template <class Put>
  RLX_INLINE static void turn(const Bytes16* from, int64_t from_stride, Put put) {
    for (int c = 0; c < n; ++c) {
      Row row;
      for (int r = 0; r < n; ++r) row.element[r] = from[r * from_stride + c];
      put(c, row);
    }
  }
};

RLX_INLINE void stream_line(std::byte* to, const std::byte* from) {
  for (int64_t i = 0; i < kLine; i += kVectorBytes) {
    stream(reinterpret_cast<float*>(to + i), load_bytes<F32>(from + i));
  }
}

template <class T>
void transpose_strip(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                     int64_t columns, bool streaming) {
  constexpr int64_t n = Square<T>::n, element = sizeof(T);
  const int64_t unit = streaming ? kLine / element : n;
  const int64_t whole_rows = rows / unit * unit, whole_columns = columns / n * n;
  if (!streaming) {
    for (int64_t j = 0; j < whole_columns; j += n) {
      for (int64_t i = 0; i < whole_rows; i += n) {
        Square<T>::turn(from + i * from_stride + j, from_stride, [&](int c, const auto& v) {
          std::memcpy(to + (j + c) * to_stride + i, &v, sizeof v);
        });
      }
    }
  } else if constexpr (n * element == kLine) {
    for (int64_t j = 0; j < whole_columns; j += n) {
      for (int64_t i = 0; i < whole_rows; i += n) {
        Square<T>::turn(from + i * from_stride + j, from_stride, [&](int c, const auto& v) {
          std::byte line[kLine];
          std::memcpy(line, &v, kLine);
          stream_line(reinterpret_cast<std::byte*>(to + (j + c) * to_stride + i), line);
        });
      }
    }
  } else {
    alignas(64) std::byte lines[n][kStrip];
    for (int64_t j = 0; j < whole_columns; j += n) {
      for (int64_t i = 0; i < whole_rows; i += n) {
        Square<T>::turn(from + i * from_stride + j, from_stride,
                        [&](int c, const auto& v) { std::memcpy(lines[c] + i * element, &v, sizeof v); });
      }
      for (int c = 0; c < n; ++c) {
        std::byte* line = reinterpret_cast<std::byte*>(to + (j + c) * to_stride);
        for (int64_t at = 0; at < whole_rows * element; at += kLine) stream_line(line + at, lines[c] + at);
      }
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
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
