// LAPACK behind our row-major conventions, where the build found it. One matrix a call, on the calling
// thread: the library is kept to one thread, since batches are split over ours.
//
// Work areas are counted in elements of T. Without LAPACK available() is false and nothing else may be
// called.
#pragma once

#include <cstdint>

namespace rlx::cpu::lapack {

bool available();

/// a x = b for a [n, n], b and x [n, k]; returns the column without a pivot, or -1.
int64_t solve_work(int64_t n, int64_t k);
template <class T>
int64_t solve(int64_t n, int64_t k, const T* a, const T* b, T* x, T* work);

/// y y^T = (a + a^T) / 2; returns the row without a positive pivot, or -1.
int64_t cholesky_work(int64_t n);
template <class T>
int64_t cholesky(int64_t n, const T* a, T* y, T* work);

/// a [m, n] = q [m, r] R [r, n], r = min(m, n), signs as LAPACK leaves them.
template <class T>
int64_t qr_work(int64_t m, int64_t n);
template <class T>
void qr(int64_t m, int64_t n, const T* a, T* q, T* r, T* work);

/// (a + a^T) / 2 = v diag(w) v^T, w ascending; false when the iteration did not converge (NaN).
template <class T>
int64_t eigh_work(int64_t n);
template <class T>
bool eigh(int64_t n, const T* a, T* w, T* v, T* work);

/// a [m, n] = u [m, r] diag(s) vt [r, n], s descending; false when the iteration did not converge (NaN).
template <class T>
int64_t svd_work(int64_t m, int64_t n);
template <class T>
bool svd(int64_t m, int64_t n, const T* a, T* u, T* s, T* vt, T* work);

}  // namespace rlx::cpu::lapack
