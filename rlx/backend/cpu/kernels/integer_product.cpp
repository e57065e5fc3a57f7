#include "rlx/backend/cpu/kernels/integer_product.h"

#include <algorithm>

#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

// Columns of C that are summed together, on the stack.
constexpr int64_t kColumns = 64;

template <class T>
void multiply_row(const IntegerProduct& p, int64_t row) {
  const T* a = static_cast<const T*>(p.a) + row * p.a_row;
  const T* b = static_cast<const T*>(p.b);
  T* c = static_cast<T*>(p.c) + row * p.c_row;
  for (int64_t first = 0; first < p.n; first += kColumns) {
    const int64_t width = std::min(kColumns, p.n - first);
    T sums[kColumns] = {};
    for (int64_t k = 0; k < p.k; ++k) {
      const T factor = a[k * p.a_column];
      const T* line = b + k * p.b_row + first * p.b_column;
      for (int64_t j = 0; j < width; ++j) sums[j] += factor * line[j * p.b_column];
    }
    std::copy_n(sums, width, c + first);
  }
}

template <class T>
void multiply(Team team, const IntegerProduct& p) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.n * p.k));
  team.parallel_for(p.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply_row<T>(p, i);
  });
}

}  // namespace

// Unsigned numbers wrap as the sums should.
void integer_product(Team team, const IntegerProduct& p) {
  if (p.dtype == DType::i32) return multiply<uint32_t>(team, p);
  if (p.dtype == DType::i64) return multiply<uint64_t>(team, p);
  throw invalid("integer_product: dtype is ", p.dtype, "; it must be i32 or i64");
}

}  // namespace rlx::cpu
