// Eigenvalues and singular values by Jacobi rotations.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "rlx/math/factor.h"
#include "rlx/math/matrix_scale.h"

namespace rlx {
namespace {

using Complex = std::complex<double>;

double conj_of(double x) { return x; }
Complex conj_of(Complex x) { return std::conj(x); }

constexpr int kMaxSweeps = 100;   // Jacobi converges in about ten
constexpr double kTiny = 1e-300;  // beside a largest element of 1: nothing to rotate
constexpr double kConverged = 1e-16;

// Turns column j of u[m, k] so that its entry of largest modulus is positive; the factor it was turned by.
double turn_column(double* u, int64_t m, int64_t k, int64_t j) { return fix_sign(u, m, k, j) ? -1 : 1; }

Complex turn_column(Complex* u, int64_t m, int64_t k, int64_t j) {
  int64_t largest = 0;  // entries that rounding may have told apart count as equal, and the first decides
  for (int64_t i = 1; i < m; ++i) {
    if (std::abs(u[i * k + j]) > std::abs(u[largest * k + j]) * (1 + 1e-9)) largest = i;
  }
  const Complex phase = std::conj(detail::phase_of(u[largest * k + j]));
  for (int64_t i = 0; i < m; ++i) u[i * k + j] *= phase;
  u[largest * k + j] = std::abs(u[largest * k + j]);
  return phase;
}

// Replaces column j of u[m, k] by a unit vector orthogonal to columns 0 .. j-1.
template <class T>
void complete_column(T* u, int64_t m, int64_t k, int64_t j) {
  for (int64_t start = 0; start < m; ++start) {
    std::vector<T> v(size_t(m), T(0));
    v[size_t(start)] = 1;
    for (int pass = 0; pass < 2; ++pass) {  // twice is enough (Kahan, Parlett)
      for (int64_t p = 0; p < j; ++p) {
        T dot = 0;
        for (int64_t i = 0; i < m; ++i) dot += conj_of(u[i * k + p]) * v[size_t(i)];
        for (int64_t i = 0; i < m; ++i) v[size_t(i)] -= dot * u[i * k + p];
      }
    }
    double norm = 0;
    for (const T x : v) norm += std::norm(x);
    norm = std::sqrt(norm);
    if (norm < 0.5 / std::sqrt(double(m))) continue;  // some unit vector is at least this far from the span
    for (int64_t i = 0; i < m; ++i) u[i * k + j] = v[size_t(i)] / norm;
    return;
  }
}

// A rotation of columns p and q behind a turn of column q, which makes a complex off-diagonal element real.
template <class T>
struct Rotation {
  double c, s;
  T turn;
};
double real_off(double off) { return off; }
double real_off(Complex off) { return std::abs(off); }
double turn_of(double) { return 1; }
Complex turn_of(Complex off) { return std::conj(detail::phase_of(off)); }

// The rotation that makes the off-diagonal element `off` of [[p, off], [conj off, q]] zero.
template <class T>
Rotation<T> annihilate(double p, double q, T off) {
  const double theta = (q - p) / (2 * real_off(off));
  const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::hypot(theta, 1));
  const double c = 1 / std::hypot(t, 1);
  return {c, t * c, turn_of(off)};
}

template <class T>
void rotate_columns(T* x, int64_t rows, int64_t columns, int64_t p, int64_t q, const Rotation<T>& r) {
  for (int64_t i = 0; i < rows; ++i) {
    T &a = x[i * columns + p], &b = x[i * columns + q];
    const T before = a, turned = b * r.turn;
    a = r.c * before - r.s * turned;
    b = r.s * before + r.c * turned;
  }
}

template <class T>
void rotate_rows(T* x, int64_t n, int64_t p, int64_t q, const Rotation<T>& r) {
  for (int64_t j = 0; j < n; ++j) {
    T &a = x[p * n + j], &b = x[q * n + j];
    const T before = a, turned = b * conj_of(r.turn);
    a = r.c * before - r.s * turned;
    b = r.s * before + r.c * turned;
  }
}

template <class T>
std::vector<T> identity(int64_t n) {
  std::vector<T> out(size_t(n * n), T(0));
  for (int64_t i = 0; i < n; ++i) out[size_t(i * n + i)] = 1;
  return out;
}

template <class Less>
std::vector<int64_t> sorted(int64_t n, Less less) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

}  // namespace

template <class T>
void factor_eigen(const T* a, int64_t n, double* w, T* v) {
  auto scaled = detail::scaled_copy(a, n * n);
  if (!scaled) {
    std::fill_n(w, n, NAN);
    std::fill_n(v, n * n, T(NAN));
    return;
  }
  std::vector<T>& x = scaled->values;
  std::vector<T> vectors = identity<T>(n);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const T off = x[size_t(p * n + q)];
        const double pp = std::real(x[size_t(p * n + p)]), qq = std::real(x[size_t(q * n + q)]);
        if (std::abs(off) <= kTiny + kConverged * std::max(std::fabs(pp), std::fabs(qq))) continue;
        changed = true;
        const Rotation<T> r = annihilate(pp, qq, off);
        rotate_columns(x.data(), n, n, p, q, r);
        rotate_rows(x.data(), n, p, q, r);
        x[size_t(p * n + q)] = x[size_t(q * n + p)] = 0;
        rotate_columns(vectors.data(), n, n, p, q, r);
      }
    }
    if (!changed) break;
  }
  const auto value = [&](int64_t i) { return std::real(x[size_t(i * n + i)]); };
  const auto order = sorted(n, [&](int64_t i, int64_t j) { return value(i) < value(j); });
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[size_t(j)];
    w[j] = std::ldexp(value(from), scaled->exponent);
    for (int64_t i = 0; i < n; ++i) v[i * n + j] = vectors[size_t(i * n + from)];
    turn_column(v, n, n, j);
  }
}

template void factor_eigen(const double*, int64_t, double*, double*);
template void factor_eigen(const Complex*, int64_t, double*, Complex*);

namespace {

// For m >= n: rotates columns of x until they are orthogonal; their lengths are the singular values.
template <class T>
void svd_tall(std::vector<T> x, int64_t m, int64_t n, T* u, double* s, T* v) {
  std::vector<T> vectors = identity<T>(n);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0;
        T pq = 0;
        for (int64_t i = 0; i < m; ++i) {
          const T xp = x[size_t(i * n + p)], xq = x[size_t(i * n + q)];
          pp += std::norm(xp), qq += std::norm(xq), pq += conj_of(xp) * xq;
        }
        if (std::abs(pq) <= kTiny + kConverged * std::sqrt(pp) * std::sqrt(qq)) continue;
        changed = true;
        const Rotation<T> r = annihilate(pp, qq, pq);
        rotate_columns(x.data(), m, n, p, q, r);
        rotate_columns(vectors.data(), n, n, p, q, r);
      }
    }
    if (!changed) break;
  }
  std::vector<double> length(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < m; ++i) sum = std::hypot(sum, std::abs(x[size_t(i * n + j)]));
    length[size_t(j)] = sum;
  }
  const auto order = sorted(n, [&](int64_t i, int64_t j) { return length[size_t(i)] > length[size_t(j)]; });
  const double largest = n > 0 ? length[size_t(order[0])] : 0;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[size_t(j)];
    s[j] = length[size_t(from)];
    const bool has_direction = s[j] > largest * 1e-15 * double(m);
    for (int64_t i = 0; i < m; ++i) u[i * n + j] = has_direction ? x[size_t(i * n + from)] / s[j] : T(0);
    if (!has_direction) complete_column(u, m, n, j);
    for (int64_t i = 0; i < n; ++i) v[i * n + j] = vectors[size_t(i * n + from)];
  }
}

}  // namespace

template <class T>
void factor_svd(const T* a, int64_t m, int64_t n, T* u, double* s, T* vh) {
  const int64_t k = std::min(m, n);
  auto scaled = detail::scaled_copy(a, m * n);
  if (!scaled) {
    std::fill_n(u, m * k, T(NAN));
    std::fill_n(s, k, NAN);
    std::fill_n(vh, k * n, T(NAN));
    return;
  }
  std::vector<T> left(size_t(m * k)), right(size_t(n * k));  // [m, k] and [n, k]
  if (m >= n) {
    svd_tall(std::move(scaled->values), m, n, left.data(), s, right.data());
  } else {  // A^H = right diag(s) left^H
    std::vector<T> turned(size_t(m * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) turned[size_t(j * m + i)] = conj_of(scaled->values[size_t(i * n + j)]);
    }
    svd_tall(std::move(turned), n, m, right.data(), s, left.data());
  }
  for (int64_t j = 0; j < k; ++j) {
    s[j] = std::ldexp(s[j], scaled->exponent);
    const T phase = turn_column(left.data(), m, k, j);
    for (int64_t i = 0; i < n; ++i) vh[j * n + i] = conj_of(phase * right[size_t(i * k + j)]);
  }
  std::copy(left.begin(), left.end(), u);
}

template void factor_svd(const double*, int64_t, int64_t, double*, double*, double*);
template void factor_svd(const Complex*, int64_t, int64_t, Complex*, double*, Complex*);

}  // namespace rlx
