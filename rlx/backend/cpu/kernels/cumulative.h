// Running sums, products and extremes along one axis.
#pragma once

#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class Running : uint8_t { sum, prod, max, min };
inline constexpr int kRunningCount = 4;

/// y[o, j, i] = sum (product, maximum, minimum) of x[o, k, i] over k <= j, from the end when reverse; without
/// x[o, j, i] itself when exclusive (sums and products only). f32, f64, i32, i64, contiguous; y may be x.
/// Sums and products of f32 are carried in f64, integers wrap, NaN wins in max and min from where it stands.
/// Results do not depend on the number of threads.
struct Cumulative {
  Running kind = Running::sum;
  DType dtype = DType::f32;
  int64_t outer = 1, n = 0, inner = 1;
  bool exclusive = false, reverse = false;
  const void* x = nullptr;
  void* y = nullptr;
  int32_t* indices = nullptr;  // max and min: the k met first that has the value; null to drop it
};
void cumulative(Team, const Cumulative&);

/// What a run has come to. Of floats in f64, of integers in i64.
struct RunningCarry {
  union {
    double real;
    int64_t integer;
  };
  int64_t index;
};

/// Serial forms of one kind and type. Elements of a run lie `step` apart, and their index in the whole run is
/// first + i or, when step < 0, first - i.
struct RunningKernels {
  /// `rows` runs of n elements, row_stride apart, each from its carry, which is brought up to date. Null y
  /// and indices: carries only.
  void (*rows)(const void* x, void* y, int32_t* indices, int64_t row_stride, int64_t rows, int64_t n,
               int64_t step, bool exclusive, int64_t first, int64_t first_stride, RunningCarry* carry);
  /// `width` <= kRunningWidth neighbouring runs.
  void (*columns)(const void* x, void* y, int32_t* indices, int64_t width, int64_t n, int64_t step,
                  bool exclusive, int64_t first);
};
inline constexpr int64_t kRunningWidth = 4096;
struct CumulativeKernels {
  RunningKernels f32[kRunningCount], f64[kRunningCount], i32[kRunningCount], i64[kRunningCount];
};

}  // namespace rlx::cpu
