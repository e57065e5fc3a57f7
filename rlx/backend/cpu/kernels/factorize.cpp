#include "rlx/backend/cpu/kernels/factorize.h"

#include <cmath>
#include <limits>
#include <vector>

#include "rlx/backend/cpu/kernels/lapack.h"
#include "rlx/backend/cpu/kernels/matrix_batch.h"
#include "rlx/math/factor.h"

namespace rlx::cpu {
namespace {

bool by_lapack(Solver solver) { return solver != Solver::own && lapack::available(); }

template <class T>
void fill_nan(T* p, int64_t n) {
  std::fill_n(p, n, std::numeric_limits<T>::quiet_NaN());
}

template <class T>
bool all_finite(const T* p, int64_t n) {
  return std::all_of(p, p + n, [](T v) { return std::isfinite(v); });
}

using Doubles = std::vector<double>;
template <class T>
Doubles widened(const T* p, int64_t n) {
  return Doubles(p, p + n);
}
template <class T>
void narrowed(const Doubles& from, T* to) {
  std::transform(from.begin(), from.end(), to, [](double v) { return T(v); });
}

template <class T>
void qr_one(bool lapack, int64_t m, int64_t n, const T* a, T* q, T* r, T* work) {
  const int64_t k = std::min(m, n);
  if (!all_finite(a, m * n)) {
    fill_nan(q, m * k);
    return fill_nan(r, k * n);
  }
  if (!lapack) {
    Doubles left(size_t(m * k)), right(size_t(k * n));
    factor_qr(widened(a, m * n).data(), m, n, left.data(), right.data());
    narrowed(left, q);
    return narrowed(right, r);
  }
  lapack::qr(m, n, a, q, r, work);
  for (int64_t i = 0; i < k; ++i) {
    if (!(r[i * n + i] < 0)) continue;
    for (int64_t j = i; j < n; ++j) r[i * n + j] = -r[i * n + j];
    for (int64_t p = 0; p < m; ++p) q[p * k + i] = -q[p * k + i];
  }
}

template <class T>
void eigh_one(bool lapack, int64_t n, const T* a, T* w, T* v, T* work) {
  const bool finite = all_finite(a, n * n);
  if (finite && !lapack) {
    Doubles symmetric(size_t(n * n)), values(static_cast<size_t>(n)), vectors(size_t(n * n));
    for (int64_t i = 0; i < n * n; ++i)
      symmetric[size_t(i)] = (double(a[i]) + double(a[i % n * n + i / n])) / 2;
    factor_eigen(symmetric.data(), n, values.data(), vectors.data());
    narrowed(values, w);
    return narrowed(vectors, v);
  }
  if (!finite || !lapack::eigh(n, a, w, v, work)) {
    fill_nan(w, n);
    return fill_nan(v, n * n);
  }
  for (int64_t j = 0; j < n; ++j) fix_sign(v, n, n, j);
}

template <class T>
void svd_one(bool lapack, int64_t m, int64_t n, const T* a, T* u, T* s, T* vt, T* work) {
  const int64_t k = std::min(m, n);
  const bool finite = all_finite(a, m * n);
  if (finite && !lapack) {
    Doubles left(size_t(m * k)), values(static_cast<size_t>(k)), right(size_t(k * n));
    factor_svd(widened(a, m * n).data(), m, n, left.data(), values.data(), right.data());
    narrowed(left, u);
    narrowed(values, s);
    return narrowed(right, vt);
  }
  if (!finite || !lapack::svd(m, n, a, u, s, vt, work)) {
    fill_nan(u, m * k);
    fill_nan(s, k);
    return fill_nan(vt, k * n);
  }
  for (int64_t j = 0; j < k; ++j) {
    if (!fix_sign(u, m, k, j)) continue;
    for (int64_t i = 0; i < n; ++i) vt[j * n + i] = -vt[j * n + i];
  }
}

template <class T>
int64_t qr_work(const Qr& p) {
  return by_lapack(p.solver) ? lapack::qr_work<T>(p.m, p.n) : 0;
}
template <class T>
int64_t eigh_work(const Eigh& p) {
  return by_lapack(p.solver) ? lapack::eigh_work<T>(p.n) : 0;
}
template <class T>
int64_t svd_work(const Svd& p) {
  return by_lapack(p.solver) ? lapack::svd_work<T>(p.m, p.n) : 0;
}

double cube(int64_t m, int64_t n) { return double(m) * double(n) * double(std::min(m, n)); }

}  // namespace

size_t qr_workspace(const Qr& p, int threads) {
  return with_real(p.dtype, "qr", [&]<class T>(T) { return workspace_bytes<T>(threads, qr_work<T>(p)); });
}

void qr(Team team, const Qr& p, std::byte* workspace) {
  const int64_t m = p.m, n = p.n, k = std::min(m, n);
  with_real(p.dtype, "qr", [&]<class T>(T) {
    each_matrix<T>(team, p.batch, cube(m, n), qr_work<T>(p), workspace, [&](int64_t i, T* work) {
      qr_one(by_lapack(p.solver), m, n, static_cast<const T*>(p.a) + i * m * n,
             static_cast<T*>(p.q) + i * m * k, static_cast<T*>(p.r) + i * k * n, work);
      return int64_t(-1);
    });
  });
}

size_t eigh_workspace(const Eigh& p, int threads) {
  return with_real(p.dtype, "eigh", [&]<class T>(T) { return workspace_bytes<T>(threads, eigh_work<T>(p)); });
}

void eigh(Team team, const Eigh& p, std::byte* workspace) {
  const int64_t n = p.n;
  with_real(p.dtype, "eigh", [&]<class T>(T) {
    each_matrix<T>(team, p.batch, cube(n, n) * 5, eigh_work<T>(p), workspace, [&](int64_t i, T* work) {
      eigh_one(by_lapack(p.solver), n, static_cast<const T*>(p.a) + i * n * n, static_cast<T*>(p.w) + i * n,
               static_cast<T*>(p.v) + i * n * n, work);
      return int64_t(-1);
    });
  });
}

size_t svd_workspace(const Svd& p, int threads) {
  return with_real(p.dtype, "svd", [&]<class T>(T) { return workspace_bytes<T>(threads, svd_work<T>(p)); });
}

void svd(Team team, const Svd& p, std::byte* workspace) {
  const int64_t m = p.m, n = p.n, k = std::min(m, n);
  with_real(p.dtype, "svd", [&]<class T>(T) {
    each_matrix<T>(team, p.batch, cube(m, n) * 10, svd_work<T>(p), workspace, [&](int64_t i, T* work) {
      svd_one(by_lapack(p.solver), m, n, static_cast<const T*>(p.a) + i * m * n,
              static_cast<T*>(p.u) + i * m * k, static_cast<T*>(p.s) + i * k,
              static_cast<T*>(p.vt) + i * k * n, work);
      return int64_t(-1);
    });
  });
}

}  // namespace rlx::cpu
