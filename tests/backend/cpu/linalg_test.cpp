#include "rlx/backend/cpu/kernels/linalg.h"

#include <complex>
#include <limits>

#include "rlx/backend/cpu/kernels/lapack.h"
#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

template <class T>
struct Scalar {
  static constexpr DType dtype = std::is_same_v<T, float>    ? DType::f32
                                 : std::is_same_v<T, double> ? DType::f64
                                                             : DType::c64;
  using Real = decltype(std::abs(T()));
  using Wide = std::conditional_t<std::is_same_v<T, complex64>, std::complex<double>, double>;
  static constexpr double epsilon = std::numeric_limits<Real>::epsilon();
};

float draw(uint64_t seed, int64_t i) {
  return 2 * uniform_from_bits(philox_block(seed, 0, uint64_t(i))[0]) - 1;
}

/// Entries in [-1, 1), the diagonal `diagonal` larger.
template <class T>
Array<T> matrices(int64_t batch, int64_t rows, int64_t columns, uint64_t seed, double diagonal, int offset) {
  Array<T> a(batch * rows * columns, offset);
  for (int64_t i = 0; i < a.size(); ++i) {
    if constexpr (std::is_same_v<T, complex64>) {
      a[i] = {draw(seed, 2 * i), draw(seed, 2 * i + 1)};
    } else {
      a[i] = T(draw(seed, i));
    }
    if (i / columns % rows == i % columns) a[i] += T(diagonal);
  }
  return a;
}

Array<std::byte> bytes(size_t n) { return Array<std::byte>(int64_t(n)); }

/// |a x - b| <= bound * epsilon * (|a| |x| + |b|), row by row: the backward error.
template <class T, class At>
void expect_solved(int64_t batch, int64_t n, int64_t k, At at, const T* b, const T* x, double bound) {
  using Wide = typename Scalar<T>::Wide;
  for (int64_t m = 0; m < batch; ++m) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        const int64_t place = (m * n + i) * k + j;
        Wide sum = -Wide(b[place]);
        double size = std::abs(sum);
        for (int64_t p = 0; p < n; ++p) {
          const Wide term = Wide(at(m, i, p)) * Wide(x[(m * n + p) * k + j]);
          sum += term;
          size += std::abs(term);
        }
        ASSERT_LE(std::abs(sum), bound * Scalar<T>::epsilon * size)
            << "matrix " << m << " row " << i << " column " << j << " n " << n << " k " << k;
      }
    }
  }
}

template <class T>
void check_dense_solve(Team team, int64_t batch, int64_t n, int64_t k, Solver solver) {
  const Array<T> a = matrices<T>(batch, n, n, 1, 0, 1);
  Array<T> b = matrices<T>(batch, n, k, 2, 0, 1);
  Array<T> x(batch * n * k, 3);
  DenseSolve p{.dtype = Scalar<T>::dtype,
               .batch = batch,
               .n = n,
               .k = k,
               .a = a.data(),
               .b = b.data(),
               .x = x.data(),
               .solver = solver};
  auto work = bytes(dense_solve_workspace(p, team.threads()));
  ASSERT_FALSE(dense_solve(team, p, work.data()));
  // Partial pivoting lets entries grow a little with n; 4 n covers what was seen with a factor to spare.
  expect_solved(
      batch, n, k, [&](int64_t m, int64_t i, int64_t j) { return a[(m * n + i) * n + j]; }, b.data(),
      x.data(), 4.0 * double(n) + 8);
  Array<T> again = x;
  p.x = b.data();  // in place
  ASSERT_FALSE(dense_solve(team, p, work.data()));
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(b[i], again[i]);
}

TEST(Linalg, dense_solve_leaves_a_small_residual) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 1, 2, 7, 9, 16, 17, 33, 64, 70}) {
      for (int64_t k : {0, 1, 3, 17}) {
        const int64_t batch = n > 20 ? 2 : 5;
        check_dense_solve<float>(team, batch, n, k, Solver::automatic);
        check_dense_solve<double>(team, batch, n, k, Solver::automatic);
        check_dense_solve<complex64>(team, batch, n, k, Solver::automatic);
      }
    }
    check_dense_solve<float>(team, 0, 5, 1, Solver::automatic);
  });
}

TEST(Linalg, lapack_and_our_own_solver_both_leave_a_small_residual) {
  Pool pool(2);
  for (Solver solver : {Solver::own, Solver::lapack}) {
    if (solver == Solver::lapack && !lapack::available()) continue;
    check_dense_solve<float>(Team(pool), 3, 90, 5, solver);
    check_dense_solve<double>(Team(pool), 3, 90, 5, solver);
  }
}

TEST(Linalg, dense_solve_exchanges_rows) {
  test::at_every_level([](Team team) {
    for (int64_t n : {2, 10, 40}) {  // the identity backwards: every pivot has to be fetched
      Array<float> a(n * n), b(n), x(n);
      for (int64_t i = 0; i < n; ++i) a[i * n + n - 1 - i] = 1, b[i] = float(i);
      DenseSolve p{.n = n, .a = a.data(), .b = b.data(), .x = x.data()};
      auto work = bytes(dense_solve_workspace(p, team.threads()));
      ASSERT_FALSE(dense_solve(team, p, work.data()));
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], float(n - 1 - i));
    }
  });
}

template <class T>
void check_singular(Team team, int64_t n) {
  const int64_t batch = 5;
  Array<T> a = matrices<T>(batch, n, n, 3, 0, 0), b = matrices<T>(batch, n, 1, 4, 0, 0), x(batch * n);
  for (int64_t i = 0; i < n; ++i) a[2 * n * n + i * n + n / 2] = 0;  // a column of zeros
  for (int64_t i = 0; i < n; ++i) a[3 * n * n + i * n + n - 1] = T(0);
  DenseSolve p{
      .dtype = Scalar<T>::dtype, .batch = batch, .n = n, .a = a.data(), .b = b.data(), .x = x.data()};
  auto work = bytes(dense_solve_workspace(p, team.threads()));
  const auto found = dense_solve(team, p, work.data());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->matrix, 2);
  ASSERT_EQ(found->index, n / 2);
  const auto at = [&](int64_t, int64_t i, int64_t j) { return a[(4 * n + i) * n + j]; };
  expect_solved(1, n, 1, at, b.data() + 4 * n, x.data() + 4 * n, 4.0 * double(n) + 8);
}

TEST(Linalg, the_first_singular_matrix_is_named_and_the_others_are_solved) {
  test::at_every_level([](Team team) {
    for (int64_t n : {3, 12, 37}) {
      check_singular<float>(team, n);
      check_singular<double>(team, n);
      check_singular<complex64>(team, n);
    }
  });
}

TEST(Linalg, nan_in_a_matrix_is_no_singularity) {
  test::at_every_level([](Team team) {
    for (int64_t n : {3, 20}) {
      Array<float> a = matrices<float>(1, n, n, 5, 0, 0), b = matrices<float>(1, n, 1, 6, 0, 0), x(n);
      a[n + 1] = NAN;
      DenseSolve p{.n = n, .a = a.data(), .b = b.data(), .x = x.data()};
      auto work = bytes(dense_solve_workspace(p, team.threads()));
      ASSERT_FALSE(dense_solve(team, p, work.data()));
      ASSERT_TRUE(std::isnan(x[0]));
    }
  });
}

TEST(Linalg, tiny_pivots_divide) {
  test::at_every_level([](Team team) {
    for (int64_t n : {3, 20}) {
      Array<float> a(n * n), b(n), x(n);
      for (int64_t i = 0; i < n; ++i) a[i * n + i] = 0x1p-140f, b[i] = 0x1p-139f;
      DenseSolve p{.n = n, .a = a.data(), .b = b.data(), .x = x.data()};
      auto work = bytes(dense_solve_workspace(p, team.threads()));
      ASSERT_FALSE(dense_solve(team, p, work.data()));
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], 2.0f);
    }
  });
}

template <class T>
void check_cholesky(Team team, int64_t batch, int64_t n, Solver solver) {
  // Not symmetric as given: the factor is that of the symmetric part.
  const Array<T> a = matrices<T>(batch, n, n, 7, double(n), 1);
  Array<T> y(batch * n * n, 2);
  Cholesky p{
      .dtype = Scalar<T>::dtype, .batch = batch, .n = n, .a = a.data(), .y = y.data(), .solver = solver};
  auto work = bytes(cholesky_workspace(p, team.threads()));
  ASSERT_FALSE(cholesky(team, p, work.data()));
  for (int64_t m = 0; m < batch; ++m) {
    const T *from = a.data() + m * n * n, *l = y.data() + m * n * n;
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_GT(l[i * n + i], 0);
      for (int64_t j = 0; j < n; ++j) {
        if (j > i) {
          ASSERT_EQ(l[i * n + j], T(0));
          continue;
        }
        double sum = 0;
        for (int64_t q = 0; q <= j; ++q) sum += double(l[i * n + q]) * double(l[j * n + q]);
        const double want = (double(from[i * n + j]) + double(from[j * n + i])) / 2;
        // The diagonal is n + 1 at most; so are the sums of squares of rows of the factor.
        ASSERT_NEAR(sum, want, (double(n) + 8) * (double(n) + 1) * Scalar<T>::epsilon) << i << " " << j;
      }
    }
  }
}

TEST(Linalg, cholesky_multiplies_back_to_the_symmetric_part) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 1, 3, 8, 16, 21, 64, 67}) {
      check_cholesky<float>(team, 3, n, Solver::automatic);
      check_cholesky<double>(team, 3, n, Solver::automatic);
    }
  });
  Pool pool(2);
  if (lapack::available()) {
    check_cholesky<float>(Team(pool), 3, 40, Solver::lapack);
    check_cholesky<double>(Team(pool), 3, 40, Solver::lapack);
  }
}

TEST(Linalg, cholesky_names_the_row_without_a_positive_pivot) {
  test::at_every_level([](Team team) {
    for (Solver solver : {Solver::own, Solver::lapack}) {
      if (solver == Solver::lapack && !lapack::available()) continue;
      for (int64_t n : {4, 30}) {
        Array<float> a(2 * n * n), y(2 * n * n);
        for (int64_t i = 0; i < n; ++i) a[i * n + i] = a[(n + i) * n + i] = 4;
        a[(n + n - 2) * n + n - 2] = -1;
        Cholesky p{.batch = 2, .n = n, .a = a.data(), .y = y.data(), .solver = solver};
        auto work = bytes(cholesky_workspace(p, team.threads()));
        const auto found = cholesky(team, p, work.data());
        ASSERT_TRUE(found);
        ASSERT_EQ(found->matrix, 1);
        ASSERT_EQ(found->index, n - 2);
        ASSERT_EQ(y[0], 2);
        a[(n + n - 2) * n + n - 2] = NAN;
        const auto nan = cholesky(team, p, work.data());
        ASSERT_TRUE(nan);
        ASSERT_EQ(nan->index, n - 2);
      }
    }
  });
}

template <class T>
void check_triangular(Team team, int64_t n, int64_t k, bool lower, bool transpose, bool unit) {
  const int64_t batch = 3;
  Array<T> a = matrices<T>(batch, n, n, 8, unit ? 0 : 3, 1);
  Array<T> b = matrices<T>(batch, n, k, 9, 0, 1);
  const auto in_triangle = [&](int64_t i, int64_t j) { return lower ? j <= i : j >= i; };
  for (int64_t i = 0; i < a.size(); ++i) {  // what must not be read
    const int64_t r = i / n % n, c = i % n;
    if (!in_triangle(r, c) || (unit && r == c))
      a[i] = T(std::numeric_limits<float>::quiet_NaN());
    else if (r != c)
      a[i] *= T(typename Scalar<T>::Real(1) / typename Scalar<T>::Real(n));
  }
  Array<T> x(batch * n * k, 1);
  TriangularSolve p{.dtype = Scalar<T>::dtype,
                    .batch = batch,
                    .n = n,
                    .k = k,
                    .lower = lower,
                    .transpose = transpose,
                    .unit_diagonal = unit,
                    .a = a.data(),
                    .b = b.data(),
                    .x = x.data()};
  auto work = bytes(triangular_solve_workspace(p, team.threads()));
  ASSERT_FALSE(triangular_solve(team, p, work.data()));
  const auto at = [&](int64_t m, int64_t i, int64_t j) {
    if (transpose) std::swap(i, j);
    if (i == j && unit) return T(1);
    return in_triangle(i, j) ? a[(m * n + i) * n + j] : T(0);
  };
  expect_solved(batch, n, k, at, b.data(), x.data(), 2.0 * double(n) + 8);
  p.x = b.data();
  ASSERT_FALSE(triangular_solve(team, p, work.data()));
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], b[i]);
}

TEST(Linalg, triangular_solve_reads_its_triangle_only) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 1, 5, 16, 35}) {
      for (int64_t k : {0, 1, 5, 40}) {
        for (int flags = 0; flags < 8; ++flags) {
          check_triangular<float>(team, n, k, flags & 1, flags & 2, flags & 4);
          check_triangular<double>(team, n, k, flags & 1, flags & 2, flags & 4);
          if (k < 6) check_triangular<complex64>(team, n, k, flags & 1, flags & 2, flags & 4);
        }
      }
    }
  });
}

TEST(Linalg, triangular_solve_names_a_zero_of_the_diagonal) {
  test::at_every_level([](Team team) {
    for (bool lower : {false, true}) {
      const int64_t n = 21;
      Array<double> a = matrices<double>(2, n, n, 10, 3, 0), b = matrices<double>(2, n, 1, 11, 0, 0),
                    x(2 * n);
      a[n * n + 18 * n + 18] = 0;
      TriangularSolve p{.dtype = DType::f64,
                        .batch = 2,
                        .n = n,
                        .lower = lower,
                        .a = a.data(),
                        .b = b.data(),
                        .x = x.data()};
      auto work = bytes(triangular_solve_workspace(p, team.threads()));
      const auto found = triangular_solve(team, p, work.data());
      ASSERT_TRUE(found);
      ASSERT_EQ(found->matrix, 1);
      ASSERT_EQ(found->index, 18);
    }
  });
}

TEST(Linalg, results_do_not_depend_on_the_number_of_threads) {
  const int64_t batch = 40, n = 30;
  const Array<float> a = matrices<float>(batch, n, n, 12, 0, 0), b = matrices<float>(batch, n, 2, 13, 0, 0);
  Array<float> first(batch * n * 2), x(batch * n * 2);
  for (int threads : {1, 2, 3}) {
    Pool pool(threads);
    DenseSolve p{.batch = batch,
                 .n = n,
                 .k = 2,
                 .a = a.data(),
                 .b = b.data(),
                 .x = threads == 1 ? first.data() : x.data()};
    auto work = bytes(dense_solve_workspace(p, Team(pool).threads()));
    ASSERT_FALSE(dense_solve(Team(pool), p, work.data()));
    for (int64_t i = 0; i < x.size() && threads > 1; ++i) ASSERT_EQ(x[i], first[i]);
  }
}

TEST(Linalg, other_types_are_refused) {
  Pool pool(1);
  EXPECT_THROW((void)dense_solve_workspace({.dtype = DType::i32}, Team(pool).threads()), Error);
  EXPECT_THROW((void)cholesky_workspace({.dtype = DType::c64}, Team(pool).threads()), Error);
}

}  // namespace
}  // namespace rlx::cpu
