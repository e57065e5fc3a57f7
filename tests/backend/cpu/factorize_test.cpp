#include "rlx/backend/cpu/kernels/factorize.h"

#include <limits>

#include "rlx/backend/cpu/kernels/lapack.h"
#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

template <class T>
Array<T> matrices(int64_t size, uint64_t seed) {
  const Array<float> from = test::random_array(size, seed);
  Array<T> a(size, 1);
  for (int64_t i = 0; i < size; ++i) a[i] = T(from[i]);
  return a;
}

template <class T>
constexpr DType kType = std::is_same_v<T, float> ? DType::f32 : DType::f64;

/// Entries are of the order 1, so errors are about sqrt(size) roundings of numbers up to sqrt(size).
template <class T>
double tolerance(int64_t size) {
  return 20 * double(size + 4) * std::numeric_limits<T>::epsilon();
}

/// at(i, j) is the unit matrix.
template <class At>
void expect_unit(int64_t n, At at, double tolerance) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) ASSERT_NEAR(at(i, j), i == j ? 1 : 0, tolerance) << i << " " << j;
  }
}

template <class Term>
double sum(int64_t n, Term term) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) s += term(i);
  return s;
}

/// body(team, solver) for 1, 2 and 3 threads and each way to factor.
template <class Body>
void each_way(Body body) {
  for (int threads : {1, 2, 3}) {
    Pool pool(threads);
    for (Solver solver : {Solver::own, Solver::lapack}) {
      if (solver == Solver::lapack && !lapack::available()) continue;
      SCOPED_TRACE(std::string(solver == Solver::own ? "own" : "lapack") + ", threads " +
                   std::to_string(threads));
      body(Team(pool), solver);
    }
  }
}

template <class T>
void check_qr(Team team, Solver solver, int64_t batch, int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  const Array<T> a = matrices<T>(batch * m * n, 1);
  Array<T> q(batch * m * k, 1), r(batch * k * n, 1);
  Qr p{.dtype = kType<T>,
       .batch = batch,
       .m = m,
       .n = n,
       .a = a.data(),
       .q = q.data(),
       .r = r.data(),
       .solver = solver};
  Array<std::byte> work(int64_t(qr_workspace(p, team.threads())));
  qr(team, p, work.data());
  const double near = tolerance<T>(m + n);
  for (int64_t b = 0; b < batch; ++b) {
    const T *A = a.data() + b * m * n, *Q = q.data() + b * m * k, *R = r.data() + b * k * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_NEAR(A[i * n + j],
                    sum(k, [&](int64_t c) { return double(Q[i * k + c]) * double(R[c * n + j]); }), near);
      }
    }
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_GE(R[i * n + i], 0);
      for (int64_t j = 0; j < i; ++j) ASSERT_EQ(R[i * n + j], T(0));
    }
    const auto gram = [&](int64_t i, int64_t j) {
      return sum(m, [&](int64_t c) { return double(Q[c * k + i]) * double(Q[c * k + j]); });
    };
    expect_unit(k, gram, near);
  }
}

TEST(Factorize, qr_multiplies_back_with_an_orthogonal_q) {
  each_way([](Team team, Solver solver) {
    for (auto [m, n] :
         {std::pair<int64_t, int64_t>{0, 3}, {3, 0}, {1, 1}, {5, 5}, {9, 4}, {4, 9}, {33, 20}}) {
      check_qr<float>(team, solver, 4, m, n);
      check_qr<double>(team, solver, 4, m, n);
    }
  });
}

/// The first entry of largest modulus of column j is positive.
template <class T>
void expect_signs(const T* u, int64_t m, int64_t k) {
  for (int64_t j = 0; j < k; ++j) {
    T largest = 0;
    for (int64_t i = 0; i < m; ++i) {
      if (std::abs(u[i * k + j]) > std::abs(largest) * T(1.00001)) largest = u[i * k + j];
    }
    ASSERT_GE(largest, 0) << "column " << j;
  }
}

template <class T>
void check_eigh(Team team, Solver solver, int64_t batch, int64_t n) {
  const Array<T> a = matrices<T>(batch * n * n, 2);
  Array<T> w(batch * n, 1), v(batch * n * n, 1);
  Eigh p{.dtype = kType<T>,
         .batch = batch,
         .n = n,
         .a = a.data(),
         .w = w.data(),
         .v = v.data(),
         .solver = solver};
  Array<std::byte> work(int64_t(eigh_workspace(p, team.threads())));
  eigh(team, p, work.data());
  const double near = tolerance<T>(2 * n);
  for (int64_t b = 0; b < batch; ++b) {
    const T *A = a.data() + b * n * n, *W = w.data() + b * n, *V = v.data() + b * n * n;
    for (int64_t i = 1; i < n; ++i) ASSERT_LE(W[i - 1], W[i]);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double want = (double(A[i * n + j]) + double(A[j * n + i])) / 2;
        ASSERT_NEAR(
            sum(n, [&](int64_t c) { return double(V[i * n + c]) * double(W[c]) * double(V[j * n + c]); }),
            want, near);
      }
    }
    const auto gram = [&](int64_t i, int64_t j) {
      return sum(n, [&](int64_t c) { return double(V[c * n + i]) * double(V[c * n + j]); });
    };
    expect_unit(n, gram, near);
    expect_signs(V, n, n);
  }
}

TEST(Factorize, eigenvectors_of_the_symmetric_part) {
  each_way([](Team team, Solver solver) {
    for (int64_t n : {0, 1, 2, 7, 24}) {
      check_eigh<float>(team, solver, 5, n);
      check_eigh<double>(team, solver, 5, n);
    }
  });
}

template <class T>
void check_svd(Team team, Solver solver, int64_t batch, int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  const Array<T> a = matrices<T>(batch * m * n, 3);
  Array<T> u(batch * m * k, 1), s(batch * k, 1), vt(batch * k * n, 1);
  Svd p{.dtype = kType<T>,
        .batch = batch,
        .m = m,
        .n = n,
        .a = a.data(),
        .u = u.data(),
        .s = s.data(),
        .vt = vt.data(),
        .solver = solver};
  Array<std::byte> work(int64_t(svd_workspace(p, team.threads())));
  svd(team, p, work.data());
  const double near = tolerance<T>(m + n);
  for (int64_t b = 0; b < batch; ++b) {
    const T *A = a.data() + b * m * n, *U = u.data() + b * m * k, *S = s.data() + b * k,
            *V = vt.data() + b * k * n;
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_GE(S[i], 0);
      ASSERT_GE(S[std::max<int64_t>(i, 1) - 1], S[i]);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_NEAR(
            A[i * n + j],
            sum(k, [&](int64_t c) { return double(U[i * k + c]) * double(S[c]) * double(V[c * n + j]); }),
            near);
      }
    }
    const auto left = [&](int64_t i, int64_t j) {
      return sum(m, [&](int64_t c) { return double(U[c * k + i]) * double(U[c * k + j]); });
    };
    const auto right = [&](int64_t i, int64_t j) {
      return sum(n, [&](int64_t c) { return double(V[i * n + c]) * double(V[j * n + c]); });
    };
    expect_unit(k, left, near);
    expect_unit(k, right, near);
    expect_signs(U, m, k);
  }
}

TEST(Factorize, singular_vectors_multiply_back) {
  each_way([](Team team, Solver solver) {
    for (auto [m, n] :
         {std::pair<int64_t, int64_t>{0, 3}, {3, 0}, {1, 1}, {6, 6}, {11, 5}, {5, 11}, {26, 20}}) {
      check_svd<float>(team, solver, 4, m, n);
      check_svd<double>(team, solver, 4, m, n);
    }
  });
}

TEST(Factorize, both_ways_find_the_same_factors) {
  if (!lapack::available()) GTEST_SKIP() << "this build has no LAPACK";
  Pool pool(1);
  const int64_t n = 6;
  const Array<double> a = matrices<double>(n * n, 4);
  Array<double> w[2] = {Array<double>(n), Array<double>(n)},
                v[2] = {Array<double>(n * n), Array<double>(n * n)};
  for (int i = 0; i < 2; ++i) {
    Eigh p{.dtype = DType::f64,
           .n = n,
           .a = a.data(),
           .w = w[i].data(),
           .v = v[i].data(),
           .solver = i == 0 ? Solver::own : Solver::lapack};
    Array<std::byte> work(int64_t(eigh_workspace(p, Team(pool).threads())));
    eigh(Team(pool), p, work.data());
  }
  test::expect_near(w[0].data(), w[1].data(), n, 1e-13, "w");
  test::expect_near(v[0].data(), v[1].data(), n * n, 1e-12, "v");
}

TEST(Factorize, nan_gives_nan_for_its_matrix_alone) {
  each_way([](Team team, Solver solver) {
    const int64_t n = 4;
    Array<float> a = matrices<float>(2 * n * n, 5), u(2 * n * n), s(2 * n), vt(2 * n * n);
    a[3] = NAN;
    Svd p{.batch = 2,
          .m = n,
          .n = n,
          .a = a.data(),
          .u = u.data(),
          .s = s.data(),
          .vt = vt.data(),
          .solver = solver};
    Array<std::byte> work(int64_t(svd_workspace(p, team.threads())));
    svd(team, p, work.data());
    Eigh e{.batch = 2, .n = n, .a = a.data(), .w = s.data(), .v = vt.data(), .solver = solver};
    EXPECT_TRUE(std::isnan(s[0]));
    EXPECT_FALSE(std::isnan(s[n]));
    Array<std::byte> more(int64_t(eigh_workspace(e, team.threads())));
    eigh(team, e, more.data());
    EXPECT_TRUE(std::isnan(s[0]));
    EXPECT_FALSE(std::isnan(s[n]));
    Qr q{.batch = 2, .m = n, .n = n, .a = a.data(), .q = u.data(), .r = vt.data(), .solver = solver};
    Array<std::byte> last(int64_t(qr_workspace(q, team.threads())));
    qr(team, q, last.data());
    EXPECT_TRUE(std::isnan(u[0]));
    EXPECT_FALSE(std::isnan(u[n * n]));
  });
}

TEST(Factorize, other_types_are_refused) {
  Pool pool(1);
  EXPECT_THROW((void)qr_workspace({.dtype = DType::f16}, Team(pool).threads()), Error);
  EXPECT_THROW((void)svd_workspace({.dtype = DType::c64}, Team(pool).threads()), Error);
}

}  // namespace
}  // namespace rlx::cpu
