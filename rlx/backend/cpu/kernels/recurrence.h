// First-order linear recurrences along the middle axis of [outer, n, inner]: y[j] = a[j] y[j-1] + b[j],
// the first y = b, from the end when reverse. f32 is carried in f64. Runs are split over threads, which changes no result.
#pragma once

#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

struct LinearRecurrence {
  DType dtype = DType::f32;  // f32 or f64
  int64_t outer = 1, n = 0, inner = 1;
  bool reverse = false;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;  // may be a or b
};
void linear_recurrence(Team, const LinearRecurrence&);

}  // namespace rlx::cpu
