// Factorisations of batches of row-major matrices: QR, symmetric eigenvalues, singular values; f32 and f64.
//
// By LAPACK where the build found it, else by the plain forms of rlx/math/factor.h, which work in f64 and
// allocate what they need. Signs are fixed, so both give the same factors up to rounding. A matrix with NaN
// or infinity has NaN factors. Matrices of a batch are split over threads, which changes no result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/kernels/linalg.h"

namespace rlx::cpu {

/// a [batch, m, n] = q [batch, m, k] r [batch, k, n], k = min(m, n); q^T q = 1, r upper triangular with a
/// diagonal that is not negative.
struct Qr {
  DType dtype = DType::f32;
  int64_t batch = 1, m = 0, n = 0;
  const void* a = nullptr;
  void* q = nullptr;
  void* r = nullptr;
  Solver solver = Solver::automatic;
};
size_t qr_workspace(const Qr&, int threads);
void qr(Team, const Qr&, std::byte* workspace);

/// (a + a^T) / 2 = v diag(w) v^T for a [batch, n, n]; w [batch, n] ascending, v orthogonal, the entry of
/// largest modulus in each column positive.
struct Eigh {
  DType dtype = DType::f32;
  int64_t batch = 1, n = 0;
  const void* a = nullptr;
  void* w = nullptr;
  void* v = nullptr;
  Solver solver = Solver::automatic;
};
size_t eigh_workspace(const Eigh&, int threads);
void eigh(Team, const Eigh&, std::byte* workspace);

/// a [batch, m, n] = u [batch, m, k] diag(s) vt [batch, k, n], k = min(m, n); s [batch, k] descending, the
/// entry of largest modulus in each column of u positive.
struct Svd {
  DType dtype = DType::f32;
  int64_t batch = 1, m = 0, n = 0;
  const void* a = nullptr;
  void* u = nullptr;
  void* s = nullptr;
  void* vt = nullptr;
  Solver solver = Solver::automatic;
};
size_t svd_workspace(const Svd&, int threads);
void svd(Team, const Svd&, std::byte* workspace);

}  // namespace rlx::cpu
