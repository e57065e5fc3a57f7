#include "rlx/backend/cpu/kernels/lapack.h"

#include <algorithm>
#include <cmath>

#include "rlx/base/error.h"

#if defined(RLX_LAPACKE)
#include <dlfcn.h>
#include <lapacke.h>
#endif

namespace rlx::cpu::lapack {

int64_t solve_work(int64_t n, int64_t k) { return n * (n + k + 1); }
int64_t cholesky_work(int64_t n) { return n * n; }

#if defined(RLX_LAPACKE)

namespace {

// Keeps the library to the calling thread. An OpenBLAS built on OpenMP asks OpenMP how many threads the
// calling thread may use, so that is what is changed, and restored; one with threads of its own has one
// global number.
class OneThread {
 public:
  OneThread() {
    if (kOmpSet != nullptr && kOmpMax != nullptr) {
      before_ = kOmpMax();
      if (before_ != 1) kOmpSet(1);
    } else if (kBlasSet != nullptr) {
      kBlasSet(1);
    }
  }
  ~OneThread() {
    if (before_ > 1) kOmpSet(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  template <class F>
  static F* find(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  }
  static inline void (*const kOmpSet)(int) = find<void(int)>("omp_set_num_threads");
  static inline int (*const kOmpMax)() = find<int()>("omp_get_max_threads");
  static inline void (*const kBlasSet)(int) = find<void(int)>("openblas_set_num_threads");

  int before_ = 1;
};

// One name for both precisions, columns first: LAPACK's own order.
constexpr int kColumns = LAPACK_COL_MAJOR;
#define RLX_LAPACK_PAIR(name)                                                                  \
  template <class T, class... Args>                                                            \
  lapack_int name(T, Args... args) {                                                           \
    if constexpr (std::is_same_v<T, float>) return LAPACKE_s##name##_work(kColumns, args...);  \
    if constexpr (std::is_same_v<T, double>) return LAPACKE_d##name##_work(kColumns, args...); \
  }
RLX_LAPACK_PAIR(gesv)
RLX_LAPACK_PAIR(potrf)
RLX_LAPACK_PAIR(geqrf)
RLX_LAPACK_PAIR(orgqr)
RLX_LAPACK_PAIR(syevd)
RLX_LAPACK_PAIR(gesdd)
#undef RLX_LAPACK_PAIR

// to [n, m] = from [m, n] transposed: row-major to column-major and back. In squares, for the caches.
template <class T>
void transpose(int64_t m, int64_t n, const T* from, T* to) {
  constexpr int64_t square = 16;
  for (int64_t i0 = 0; i0 < m; i0 += square) {
    for (int64_t j0 = 0; j0 < n; j0 += square) {
      for (int64_t i = i0; i < std::min(m, i0 + square); ++i) {
        for (int64_t j = j0; j < std::min(n, j0 + square); ++j) to[j * m + i] = from[i * n + j];
      }
    }
  }
}

template <class T>
void symmetric_part(int64_t n, const T* a, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) to[i * n + j] = (a[i * n + j] + a[j * n + i]) / 2;
  }
}

void check(lapack_int info, const char* name) {
  RLX_CHECK(info >= 0, "LAPACK ", name, " refuses argument ", -info);
}

lapack_int size(int64_t n) { return static_cast<lapack_int>(n); }

}  // namespace

bool available() { return true; }

template <class T>
int64_t solve(int64_t n, int64_t k, const T* a, const T* b, T* x, T* work) {
  if (n == 0) return -1;
  const OneThread alone;
  T *columns = work, *right = work + n * n;
  auto* pivots = reinterpret_cast<lapack_int*>(right + n * k);
  transpose(n, n, a, columns);
  transpose(n, k, b, right);
  const lapack_int info = gesv(T(), size(n), size(k), columns, size(n), pivots, right, size(n));
  check(info, "gesv");
  if (info > 0) return info - 1;
  transpose(k, n, right, x);
  return -1;
}

template <class T>
int64_t cholesky(int64_t n, const T* a, T* y, T* work) {
  if (n == 0) return -1;
  const OneThread alone;
  symmetric_part(n, a, work);
  // The upper triangle of columns is the lower one of rows.
  const lapack_int info = potrf(T(), 'U', size(n), work, size(n));
  check(info, "potrf");
  if (info > 0) return info - 1;
  for (int64_t i = 0; i < n; ++i) {
    if (!(work[i * n + i] > T(0))) return i;  // some versions let NaN pass
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = j <= i ? work[i * n + j] : T(0);
  }
  return -1;
}

template <class T>
int64_t qr_work(int64_t m, int64_t n) {
  T best[2] = {};
  const int64_t k = std::min(m, n), lead = std::max<int64_t>(1, m);
  geqrf(T(), size(m), size(n), best, size(lead), best, best, -1);
  orgqr(T(), size(m), size(k), size(k), best + 1, size(lead), best + 1, best + 1, -1);
  return m * n + k + int64_t(std::max({best[0], best[1], T(1)}));
}

template <class T>
void qr(int64_t m, int64_t n, const T* a, T* q, T* r, T* work) {
  const int64_t k = std::min(m, n);
  if (k == 0) return;
  const OneThread alone;
  T *columns = work, *tau = columns + m * n, *rest = tau + k;
  const lapack_int length = size(qr_work<T>(m, n) - m * n - k);
  transpose(m, n, a, columns);
  check(geqrf(T(), size(m), size(n), columns, size(m), tau, rest, length), "geqrf");
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = j < i ? T(0) : columns[j * m + i];
  }
  check(orgqr(T(), size(m), size(k), size(k), columns, size(m), tau, rest, length), "orgqr");
  transpose(k, m, columns, q);
}

template <class T>
int64_t eigh_work(int64_t n) {
  // As documented for syevd: 1 + 6n + 2n^2 numbers and 3 + 5n integers, n above 1.
  return n * n + (1 + 6 * n + 2 * n * n) + (3 + 5 * n);
}

template <class T>
bool eigh(int64_t n, const T* a, T* w, T* v, T* work) {
  if (n == 0) return true;
  const OneThread alone;
  const int64_t length = 1 + 6 * n + 2 * n * n;
  T *columns = work, *rest = columns + n * n;
  symmetric_part(n, a, columns);
  const lapack_int info = syevd(T(), 'V', 'U', size(n), columns, size(n), w, rest, size(length),
                                reinterpret_cast<lapack_int*>(rest + length), size(3 + 5 * n));
  check(info, "syevd");
  transpose(n, n, columns, v);
  return info == 0;
}

template <class T>
int64_t svd_work(int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  T best = 1;
  lapack_int none = 0;
  gesdd(T(), 'S', size(m), size(n), &best, size(std::max<int64_t>(1, m)), &best, &best,
        size(std::max<int64_t>(1, m)), &best, size(std::max<int64_t>(1, k)), &best, -1, &none);
  return m * n + m * k + k * n + 8 * k + int64_t(best);
}

template <class T>
bool svd(int64_t m, int64_t n, const T* a, T* u, T* s, T* vt, T* work) {
  const int64_t k = std::min(m, n);
  if (k == 0) return true;
  // gesdd refuses NaN in some versions and loops on it in others.
  if (!std::all_of(a, a + m * n, [](T v) { return std::isfinite(v); })) return false;
  const OneThread alone;
  T *columns = work, *left = columns + m * n, *right = left + m * k, *integers = right + k * n,
    *rest = integers + 8 * k;
  const lapack_int length = size(svd_work<T>(m, n) - (rest - work));
  transpose(m, n, a, columns);
  const lapack_int info = gesdd(T(), 'S', size(m), size(n), columns, size(m), s, left, size(m), right,
                                size(k), rest, length, reinterpret_cast<lapack_int*>(integers));
  check(info, "gesdd");
  transpose(k, m, left, u);
  transpose(n, k, right, vt);
  return info == 0;
}

#else

namespace {
[[noreturn]] void missing() {
  throw environment_error("lapack: this build has none; configure with LAPACKE");
}
}  // namespace

bool available() { return false; }

template <class T>
int64_t solve(int64_t, int64_t, const T*, const T*, T*, T*) {
  missing();
}
template <class T>
int64_t cholesky(int64_t, const T*, T*, T*) {
  missing();
}
template <class T>
int64_t qr_work(int64_t, int64_t) {
  missing();
}
template <class T>
void qr(int64_t, int64_t, const T*, T*, T*, T*) {
  missing();
}
template <class T>
int64_t eigh_work(int64_t) {
  missing();
}
template <class T>
bool eigh(int64_t, const T*, T*, T*, T*) {
  missing();
}
template <class T>
int64_t svd_work(int64_t, int64_t) {
  missing();
}
template <class T>
bool svd(int64_t, int64_t, const T*, T*, T*, T*, T*) {
  missing();
}

#endif

#define RLX_LAPACK_INSTANCES(T)                                         \
  template int64_t solve(int64_t, int64_t, const T*, const T*, T*, T*); \
  template int64_t cholesky(int64_t, const T*, T*, T*);                 \
  template int64_t qr_work<T>(int64_t, int64_t);                        \
  template void qr(int64_t, int64_t, const T*, T*, T*, T*);             \
  template int64_t eigh_work<T>(int64_t);                               \
  template bool eigh(int64_t, const T*, T*, T*, T*);                    \
  template int64_t svd_work<T>(int64_t, int64_t);                       \
  template bool svd(int64_t, int64_t, const T*, T*, T*, T*, T*);
RLX_LAPACK_INSTANCES(float)
RLX_LAPACK_INSTANCES(double)

}  // namespace rlx::cpu::lapack
