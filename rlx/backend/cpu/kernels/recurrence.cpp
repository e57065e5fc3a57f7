#include "rlx/backend/cpu/kernels/recurrence.h"

#include <algorithm>

#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

// Neighbouring runs that go together, so that memory is read in whole lines.
constexpr int64_t kTogether = 16;

template <class T>
void run_block(const LinearRecurrence& p, int64_t outer, int64_t first, int64_t width) {
  const T *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
  T* y = static_cast<T*>(p.y);
  double carry[kTogether] = {};
  for (int64_t j = 0; j < p.n; ++j) {
    const int64_t at = (outer * p.n + (p.reverse ? p.n - 1 - j : j)) * p.inner + first;
    for (int64_t i = 0; i < width; ++i) {
      // Nothing times the first a: an infinite one does no harm.
      carry[i] = j == 0 ? double(b[at + i]) : double(a[at + i]) * carry[i] + double(b[at + i]);
      y[at + i] = T(carry[i]);
    }
  }
}

template <class T>
void run_all(Team team, const LinearRecurrence& p) {
  const int64_t blocks = (p.inner + kTogether - 1) / kTogether;
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, p.n * kTogether));
  team.parallel_for(p.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kTogether;
      run_block<T>(p, i / blocks, first, std::min(kTogether, p.inner - first));
    }
  });
}

}  // namespace

void linear_recurrence(Team team, const LinearRecurrence& p) {
  if (p.n == 0) return;
  if (p.dtype == DType::f32) return run_all<float>(team, p);
  if (p.dtype == DType::f64) return run_all<double>(team, p);
  throw invalid("linear_recurrence: dtype is ", p.dtype, "; it must be f32 or f64");
}

}  // namespace rlx::cpu
