#include "rlx/math/factor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rlx/math/matrix_scale.h"

namespace rlx {
namespace {

using Complex = std::complex<double>;

double conj_of(double x) { return x; }
Complex conj_of(Complex x) { return std::conj(x); }

}  // namespace

template <class T>
Lu<T>::Lu(const T* a, int64_t n_in) : n(n_in), lu(a, a + n_in * n_in), row(size_t(n_in)) {
  std::iota(row.begin(), row.end(), int64_t(0));
  for (int64_t j = 0; j < n; ++j) {
    int64_t pivot = j;
    for (int64_t i = j + 1; i < n; ++i) {
      if (std::abs(lu[size_t(i * n + j)]) > std::abs(lu[size_t(pivot * n + j)])) pivot = i;
    }
    if (lu[size_t(pivot * n + j)] == T(0)) {
      if (!zero_pivot) zero_pivot = j;
      continue;
    }
    if (pivot != j) {
      std::swap_ranges(lu.begin() + j * n, lu.begin() + (j + 1) * n, lu.begin() + pivot * n);
      std::swap(row[size_t(j)], row[size_t(pivot)]);
      sign = -sign;
    }
    for (int64_t i = j + 1; i < n; ++i) {
      const T factor = lu[size_t(i * n + j)] / lu[size_t(j * n + j)];
      lu[size_t(i * n + j)] = factor;
      for (int64_t p = j + 1; p < n; ++p) lu[size_t(i * n + p)] -= factor * lu[size_t(j * n + p)];
    }
  }
}

template <class T>
void Lu<T>::solve(T* b, int64_t k) const {
  const std::vector<T> before(b, b + n * k);
  for (int64_t i = 0; i < n; ++i) std::copy_n(before.begin() + row[size_t(i)] * k, k, b + i * k);
  solve_triangular(lu.data(), n, b, k, true, false, true);
  solve_triangular(lu.data(), n, b, k, false, false, false);
}

template struct Lu<double>;
template struct Lu<Complex>;

template <class T>
std::optional<int64_t> solve_triangular(const T* a, int64_t n, T* b, int64_t k, bool lower, bool transpose,
                                        bool unit_diagonal) {
  const bool forward = lower != transpose;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forward ? step : n - 1 - step;
    if (!unit_diagonal && a[i * n + i] == T(0)) return i;
    for (int64_t before = 0; before < step; ++before) {
      const int64_t p = forward ? before : n - 1 - before;
      const T factor = transpose ? a[p * n + i] : a[i * n + p];
      for (int64_t j = 0; j < k; ++j) b[i * k + j] -= factor * b[p * k + j];
    }
    if (unit_diagonal) continue;
    for (int64_t j = 0; j < k; ++j) b[i * k + j] /= a[i * n + i];
  }
  return std::nullopt;
}

template std::optional<int64_t> solve_triangular(const double*, int64_t, double*, int64_t, bool, bool, bool);
template std::optional<int64_t> solve_triangular(const Complex*, int64_t, Complex*, int64_t, bool, bool,
                                                 bool);

template <class T>
std::optional<int64_t> factor_cholesky(T* a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      T sum = a[i * n + j];
      for (int64_t p = 0; p < j; ++p) sum -= a[i * n + p] * conj_of(a[j * n + p]);
      if (i > j) {
        a[i * n + j] = sum / a[j * n + j];
        continue;
      }
      const double pivot = std::real(sum);
      if (!(pivot > 0)) return j;  // also NaN
      a[j * n + j] = std::sqrt(pivot);
    }
    for (int64_t i = 0; i < j; ++i) a[i * n + j] = 0;
  }
  return std::nullopt;
}

template std::optional<int64_t> factor_cholesky(double*, int64_t);
template std::optional<int64_t> factor_cholesky(Complex*, int64_t);

template <class T>
void factor_qr(const T* a, int64_t m, int64_t n, T* q, T* r) {
  const int64_t k = std::min(m, n);
  const auto scaled = detail::scaled_copy(a, m * n);
  if (!scaled) {
    std::fill_n(q, m * k, T(NAN));
    std::fill_n(r, k * n, T(NAN));
    return;
  }
  std::vector<T> x = scaled->values;    // becomes R, the reflections below its diagonal
  std::vector<std::vector<T>> vectors;  // unit normals of the reflections
  for (int64_t j = 0; j < k; ++j) {
    std::vector<T> v(size_t(m), T(0));
    double norm = 0;
    for (int64_t i = j; i < m; ++i) norm = std::hypot(norm, std::abs(v[size_t(i)] = x[size_t(i * n + j)]));
    v[size_t(j)] += norm * detail::phase_of(v[size_t(j)]);
    double length = 0;
    for (const T e : v) length = std::hypot(length, std::abs(e));
    if (length > 0) {
      for (T& e : v) e /= length;
    }
    for (int64_t c = j; c < n; ++c) {
      T dot = 0;
      for (int64_t i = j; i < m; ++i) dot += conj_of(v[size_t(i)]) * x[size_t(i * n + c)];
      for (int64_t i = j; i < m; ++i) x[size_t(i * n + c)] -= 2.0 * dot * v[size_t(i)];
    }
    vectors.push_back(std::move(v));
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) q[i * k + j] = i == j ? 1 : 0;
  }
  for (size_t at = vectors.size(); at-- > 0;) {
    const auto& v = vectors[at];
    for (int64_t j = 0; j < k; ++j) {
      T dot = 0;
      for (int64_t i = 0; i < m; ++i) dot += conj_of(v[size_t(i)]) * q[i * k + j];
      for (int64_t i = 0; i < m; ++i) q[i * k + j] -= 2.0 * dot * v[size_t(i)];
    }
  }
  // The phase of each diagonal element of R moves into Q.
  for (int64_t i = 0; i < k; ++i) {
    const T phase = detail::phase_of(x[size_t(i * n + i)]);
    for (int64_t j = 0; j < n; ++j)
      r[i * n + j] =
          j < i ? T(0) : detail::times_power(conj_of(phase) * x[size_t(i * n + j)], scaled->exponent);
    r[i * n + i] = std::abs(r[i * n + i]);
    for (int64_t p = 0; p < m; ++p) q[p * k + i] *= phase;
  }
}

template void factor_qr(const double*, int64_t, int64_t, double*, double*);
template void factor_qr(const Complex*, int64_t, int64_t, Complex*, Complex*);

}  // namespace rlx
