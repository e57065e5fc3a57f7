// Reductions over any set of axes of a strided array, and the positions of extremes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class Reduction : uint8_t { sum, mean, max, min, prod, sum_of_squares, variance, log_sum_exp };

/// y = reduction of x over the axes marked `reduced`, contiguous over the others in their order. f32 and f64
/// take every kind; sums of f32 are carried in f64. i32 and i64 take sum, prod (both wrap), max and min; u8
/// and bool max and min, which are `any` and `all` of bool. NaN wins in max and min. Of nothing: sum 0,
/// product 1, max and min the ends of the type, mean and variance NaN, log_sum_exp -inf. Results do not
/// depend on the number of threads.
struct Reduce {
  static constexpr int kMaxRank = 8;
  Reduction kind = Reduction::sum;
  DType dtype = DType::f32;
  int rank = 0;
  int64_t size[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};  // of x, in elements
  bool reduced[kMaxRank] = {};
  double correction = 0;  // variance: taken off the number of elements
  bool alone = false;     // each result is added up as if it were the only one, however many there are
  const void* x = nullptr;
  void* y = nullptr;
};
size_t reduce_workspace(const Reduce&, int threads);
void reduce(Team, const Reduce&, std::byte* workspace);

/// y[o, i] = the first j with x[o, j, i] the largest (smallest); NaN counts as such. f32, f64, i32, i64; n >
/// 0.
struct ArgExtreme {
  bool largest = true;
  DType dtype = DType::f32;
  int64_t outer = 1, n = 0, inner = 1;
  const void* x = nullptr;
  int64_t* y = nullptr;
};
void arg_extreme(Team, const ArgExtreme&);

// How terms are combined, and what is combined of each element; centred terms know a centre per result.
enum class Fold : uint8_t { sum, prod, max, min };
enum class Term : uint8_t { value, square, centred_square, exponential };

/// Running results: of floats in f64, of integers in i64.
union Carry {
  double real;
  int64_t integer;
};

/// Serial forms for one type.
struct FoldKernels {
  /// carry = carry folded with the n terms of a contiguous row.
  void (*row)(const void* x, int64_t n, double centre, Carry* carry);
  /// carry[i] = carry[i] folded with the terms of x[j * stride + i], j < n, for i < width.
  void (*columns)(const void* x, int64_t stride, int64_t n, int64_t width, const double* centre,
                  Carry* carry);
};
struct ReduceKernels {
  // By Fold for plain values; for floats the three other terms of sums follow.
  FoldKernels f32[7], f64[7], i32[4], i64[4], u8[4];
  /// Position of the extreme of a contiguous row; of every column of [n, width], rows `stride` apart.
  int64_t (*arg_row[4][2])(const void* x, int64_t n);
  void (*arg_columns[4][2])(const void* x, int64_t stride, int64_t n, int64_t width, int64_t* y);
};

}  // namespace rlx::cpu
