// C[m, n] = A[m, k] B[k, n] in i32 or i64, sums modulo their width. A and B have any strides, the elements of
// a row of C are neighbours.
#pragma once

#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

struct IntegerProduct {
  DType dtype = DType::i32;  // i32 or i64
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 1, b_row = 0, b_column = 1, c_row = 0;  // strides in elements
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
};
void integer_product(Team, const IntegerProduct&);

}  // namespace rlx::cpu
