// Elementwise functions of two arrays with broadcasting, comparisons, and the choice between two arrays.
#pragma once

#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

// Integers wrap; their x / 0 and x rem 0 are 0. NaN wins in max and min. pow and rem as the C library's pow
// (2 ulp in f32, 4 ulp in f64) and fmod; pow is for floats only.
enum class Binary : uint8_t { add, sub, mul, div, max, min, rem, pow };
inline constexpr int kBinaryCount = 8;
enum class Comparison : uint8_t { eq, ne, lt, le, gt, ge };
inline constexpr int kComparisonCount = 6;

/// A box of elements, row-major and contiguous in the result. Operand i lies at strides[i], in elements, 0 on
/// the axes along which it is repeated.
struct Broadcast {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  int64_t size[kMaxRank] = {};
  int64_t strides[3][kMaxRank] = {};
};

/// y = op(a, b) for f32, f64, i32, i64. y may be an operand that has the result's own layout.
struct BinaryMap {
  Binary op = Binary::add;
  DType dtype = DType::f32;
  Broadcast box;  // strides of a and b
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};
void binary(Team, const BinaryMap&);

/// y = a op b, one byte of 0 or 1 each; operands f32, f64, i32, i64, or u8 and bool.
struct CompareMap {
  Comparison op = Comparison::eq;
  DType dtype = DType::f32;
  Broadcast box;  // strides of a and b
  const void* a = nullptr;
  const void* b = nullptr;
  uint8_t* y = nullptr;
};
void compare(Team, const CompareMap&);

/// y = condition != 0 ? a : b, for elements of 1, 2, 4 or 8 bytes.
struct Select {
  int element_bytes = 4;
  Broadcast box;  // strides of condition, a and b
  const uint8_t* condition = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};
void select(Team, const Select&);

/// Serial forms on a line of n elements, contiguous or, with the flag set, one element for all.
struct BinaryKernels {
  using Line = void (*)(const void* a, bool one_a, const void* b, bool one_b, void* y, int64_t n);
  Line f32[kBinaryCount], f64[kBinaryCount];
  Line i32[kBinaryCount - 1], i64[kBinaryCount - 1];
  Line compare_f32[kComparisonCount], compare_f64[kComparisonCount], compare_i32[kComparisonCount],
      compare_i64[kComparisonCount], compare_u8[kComparisonCount];
  void (*select[4])(const uint8_t* condition, const void* a, bool one_a, const void* b, bool one_b, void* y,
                    int64_t n);                               // by log2 of the element's bytes
  void (*stream)(const void* from, void* to, int64_t bytes);  // to at a multiple of 64 bytes; no fence
  void (*fence)();
};

}  // namespace rlx::cpu
