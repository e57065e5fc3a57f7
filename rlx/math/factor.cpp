#include "rlx/math/factor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rlx {
namespace {

using Complex = std::complex<double>;

double conj_of(double x) { return x; }
Complex conj_of(Complex x) { return std::conj(x); }

constexpr int kMaxSweeps = 100;   // Jacobi converges in about ten
constexpr double kTiny = 1e-300;  // below: nothing to rotate
constexpr double kConverged = 1e-16;

// Replaces column j of u[m, k] by a unit vector orthogonal to columns 0 .. j-1.
void complete_column(double* u, int64_t m, int64_t k, int64_t j) {
  for (int64_t start = 0; start < m; ++start) {
    std::vector<double> v(size_t(m), 0.0);
    v[size_t(start)] = 1;
    for (int pass = 0; pass < 2; ++pass) {  // twice is enough (Kahan, Parlett)
      for (int64_t p = 0; p < j; ++p) {
        double dot = 0;
        for (int64_t i = 0; i < m; ++i) dot += v[size_t(i)] * u[i * k + p];
        for (int64_t i = 0; i < m; ++i) v[size_t(i)] -= dot * u[i * k + p];
      }
    }
    double norm = 0;
    for (const double x : v) norm += x * x;
    norm = std::sqrt(norm);
    if (norm < 0.5 / std::sqrt(double(m))) continue;  // some unit vector is at least this far from the span
    for (int64_t i = 0; i < m; ++i) u[i * k + j] = v[size_t(i)] / norm;
    return;
  }
}

struct Rotation {
  double c, s;
};
// The rotation that makes the off-diagonal element `off` of [[p, off], [off, q]] zero.
Rotation annihilate(double p, double q, double off) {
  const double theta = (q - p) / (2 * off);
  const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::hypot(theta, 1));
  const double c = 1 / std::hypot(t, 1);
  return {c, t * c};
}

void rotate_columns(double* x, int64_t rows, int64_t columns, int64_t p, int64_t q, Rotation r) {
  for (int64_t i = 0; i < rows; ++i) {
    double &a = x[i * columns + p], &b = x[i * columns + q];
    const double before = a;
    a = r.c * before - r.s * b;
    b = r.s * before + r.c * b;
  }
}

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

void factor_qr(const double* a, int64_t m, int64_t n, double* q, double* r) {
  const int64_t k = std::min(m, n);
  std::vector<double> x(a, a + m * n);       // becomes R, the reflections below its diagonal
  std::vector<std::vector<double>> vectors;  // unit normals of the reflections
  for (int64_t j = 0; j < k; ++j) {
    std::vector<double> v(size_t(m), 0.0);
    double norm = 0;
    for (int64_t i = j; i < m; ++i) norm = std::hypot(norm, v[size_t(i)] = x[size_t(i * n + j)]);
    v[size_t(j)] += v[size_t(j)] >= 0 ? norm : -norm;
    double length = 0;
    for (const double e : v) length = std::hypot(length, e);
    if (length > 0) {
      for (double& e : v) e /= length;
    }
    for (int64_t c = j; c < n; ++c) {
      double dot = 0;
      for (int64_t i = j; i < m; ++i) dot += v[size_t(i)] * x[size_t(i * n + c)];
      for (int64_t i = j; i < m; ++i) x[size_t(i * n + c)] -= 2 * dot * v[size_t(i)];
    }
    vectors.push_back(std::move(v));
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) q[i * k + j] = i == j ? 1 : 0;
  }
  for (size_t at = vectors.size(); at-- > 0;) {
    const auto& v = vectors[at];
    for (int64_t j = 0; j < k; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < m; ++i) dot += v[size_t(i)] * q[i * k + j];
      for (int64_t i = 0; i < m; ++i) q[i * k + j] -= 2 * dot * v[size_t(i)];
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    const bool flip = x[size_t(i * n + i)] < 0;
    for (int64_t j = 0; j < n; ++j)
      r[i * n + j] = j < i ? 0 : flip ? -x[size_t(i * n + j)] : x[size_t(i * n + j)];
    for (int64_t p = 0; flip && p < m; ++p) q[p * k + i] = -q[p * k + i];
  }
}

void factor_eigen(const double* a, int64_t n, double* w, double* v) {
  std::vector<double> x(a, a + n * n), vectors(size_t(n * n), 0.0);
  for (int64_t i = 0; i < n; ++i) vectors[size_t(i * n + i)] = 1;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double off = x[size_t(p * n + q)], pp = x[size_t(p * n + p)], qq = x[size_t(q * n + q)];
        if (std::fabs(off) <= kTiny + kConverged * std::max(std::fabs(pp), std::fabs(qq))) continue;
        changed = true;
        const Rotation r = annihilate(pp, qq, off);
        rotate_columns(x.data(), n, n, p, q, r);
        for (int64_t j = 0; j < n; ++j) {  // and the rows
          double &top = x[size_t(p * n + j)], &bottom = x[size_t(q * n + j)];
          const double before = top;
          top = r.c * before - r.s * bottom;
          bottom = r.s * before + r.c * bottom;
        }
        x[size_t(p * n + q)] = x[size_t(q * n + p)] = 0;
        rotate_columns(vectors.data(), n, n, p, q, r);
      }
    }
    if (!changed) break;
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return x[size_t(i * n + i)] < x[size_t(j * n + j)]; });
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[size_t(j)];
    w[j] = x[size_t(from * n + from)];
    for (int64_t i = 0; i < n; ++i) v[i * n + j] = vectors[size_t(i * n + from)];
    fix_sign(v, n, n, j);
  }
}

namespace {

// For m >= n: rotates columns of A until they are orthogonal; their lengths are the singular values.
void svd_tall(const double* a, int64_t m, int64_t n, double* u, double* s, double* v) {
  std::vector<double> x(a, a + m * n), vectors(size_t(n * n), 0.0);
  for (int64_t i = 0; i < n; ++i) vectors[size_t(i * n + i)] = 1;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < m; ++i) {
          const double xp = x[size_t(i * n + p)], xq = x[size_t(i * n + q)];
          pp += xp * xp, qq += xq * xq, pq += xp * xq;
        }
        if (std::fabs(pq) <= kTiny + kConverged * std::sqrt(pp * qq)) continue;
        changed = true;
        const Rotation r = annihilate(pp, qq, pq);
        rotate_columns(x.data(), m, n, p, q, r);
        rotate_columns(vectors.data(), n, n, p, q, r);
      }
    }
    if (!changed) break;
  }
  std::vector<double> length(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < m; ++i) sum = std::hypot(sum, x[size_t(i * n + j)]);
    length[size_t(j)] = sum;
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return length[size_t(i)] > length[size_t(j)]; });
  const double largest = n > 0 ? length[size_t(order[0])] : 0;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[size_t(j)];
    s[j] = length[size_t(from)];
    const bool has_direction = s[j] > largest * 1e-15 * double(m);
    for (int64_t i = 0; i < m; ++i) u[i * n + j] = has_direction ? x[size_t(i * n + from)] / s[j] : 0;
    if (!has_direction) complete_column(u, m, n, j);
    for (int64_t i = 0; i < n; ++i) v[i * n + j] = vectors[size_t(i * n + from)];
  }
}

}  // namespace

void factor_svd(const double* a, int64_t m, int64_t n, double* u, double* s, double* vt) {
  const int64_t k = std::min(m, n);
  std::vector<double> left(size_t(m * k)), right(size_t(n * k));  // [m, k] and [n, k]
  if (m >= n) {
    svd_tall(a, m, n, left.data(), s, right.data());
  } else {
    std::vector<double> turned(size_t(m * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) turned[size_t(j * m + i)] = a[i * n + j];
    }
    svd_tall(turned.data(), n, m, right.data(), s, left.data());
  }
  for (int64_t j = 0; j < k; ++j) {
    const double sign = fix_sign(left.data(), m, k, j) ? -1 : 1;
    for (int64_t i = 0; i < n; ++i) vt[j * n + i] = sign * right[size_t(i * k + j)];
  }
  std::copy(left.begin(), left.end(), u);
}

}  // namespace rlx
