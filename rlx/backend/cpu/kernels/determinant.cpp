#include "rlx/backend/cpu/kernels/determinant.h"

#include <algorithm>
#include <cmath>

#include "rlx/backend/cpu/kernels/matrix_batch.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {
namespace {

// The product of the pivots as m 2^e, so that it neither overflows nor vanishes before its end, and its
// logarithm.
struct Pivots {
  double mantissa = 1, logarithm = 0, sign = 1;
  int64_t exponent = 0;

  void take(double pivot) {
    int e = 0;
    mantissa = std::frexp(mantissa * pivot, &e);
    exponent += e;
    sign *= pivot < 0 ? -1.0 : pivot > 0 ? 1.0 : pivot;
    logarithm += std::log(std::fabs(pivot));
  }
  void swapped() { mantissa = -mantissa, sign = -sign; }
  void singular() { mantissa = 0, sign = 0, logarithm = -INFINITY; }
  double value() const { return std::ldexp(mantissa, int(std::clamp<int64_t>(exponent, -5000, 5000))); }
};

Pivots eliminate(double* a, int64_t n) {
  Pivots out;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::fabs(a[i * n + k]) > std::fabs(a[best * n + k])) best = i;
    }
    const double pivot = a[best * n + k];
    if (pivot == 0) {
      out.singular();
      return out;
    }
    if (best != k) {
      std::swap_ranges(a + k * n + k, a + (k + 1) * n, a + best * n + k);
      out.swapped();
    }
    out.take(pivot);
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / pivot;
      if (factor == 0) continue;
      double* row = a + i * n;
      const double* top = a + k * n;
      for (int64_t j = k + 1; j < n; ++j) row[j] -= factor * top[j];
    }
  }
  return out;
}

}  // namespace

size_t determinant_workspace(const Determinant& p, int threads) {
  return size_t(threads) * round_up(size_t(p.n * p.n) * sizeof(double));
}

void determinant(Team team, const Determinant& p, std::byte* workspace) {
  with_real(p.dtype, "determinant", [&]<class T>(T) {
    const int64_t size = p.n * p.n;
    // About 1/3 n^3 multiply-adds; a second thread is worth some ten thousand.
    const int64_t grain = std::max<int64_t>(1, 30000 / std::max<int64_t>(1, size * p.n / 3));
    const int parts = int(std::min<int64_t>(team.threads(), ceil_div(p.batch, grain)));
    team.run(parts, [&](int part) {
      auto* own =
          reinterpret_cast<double*>(workspace + size_t(part) * round_up(size_t(size) * sizeof(double)));
      const Range range = split_range(p.batch, 1, parts, part);
      for (int64_t i = range.begin; i < range.end; ++i) {
        std::copy_n(static_cast<const T*>(p.a) + i * size, size, own);
        const Pivots pivots = eliminate(own, p.n);
        if (p.value != nullptr) static_cast<T*>(p.value)[i] = T(pivots.value());
        if (p.sign != nullptr) static_cast<T*>(p.sign)[i] = T(pivots.sign);
        if (p.logarithm != nullptr) static_cast<T*>(p.logarithm)[i] = T(pivots.logarithm);
      }
    });
  });
}

}  // namespace rlx::cpu
