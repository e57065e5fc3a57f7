// Values of the linear algebra operators against numbers worked out by hand and against their definitions.
#include <gtest/gtest.h>

#include "rlx/ir/graph.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/linalg/cholesky.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/einsum.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/solve.h"
#include "rlx/ops/linalg/svd.h"
#include "rlx/ops/linalg/triangular_solve.h"
#include "rlx/ops/shape/transpose.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate;
using test::expect_close;
using test::numbers;

Literal f64(Dims dims, std::vector<double> v) { return Literal::of<double>(std::move(dims), v); }

TEST(DotGeneral, contracts_any_axes_and_keeps_batch_axes_in_front) {
  // y[b,i,j] = sum over k of l[k,b,i] r[j,k,b]
  const Literal l = f64({2, 2, 1}, {1, 2, 3, 4}), r = f64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Literals y =
      evaluate({l, r}, [](const Exprs& x) { return dot_general(x[0], x[1], {{0}, {1}, {1}, {2}}); });
  expect_close(y[0], f64({2, 1, 2}, {1 * 1 + 3 * 3, 1 * 5 + 3 * 7, 2 * 2 + 4 * 4, 2 * 6 + 4 * 8}), 1e-15);
}

TEST(DotGeneral, is_an_outer_product_without_axes) {
  const auto y = numbers({f64({2}, {2, 3}), f64({3}, {1, 10, 100})},
                         [](const Exprs& x) { return dot_general(x[0], x[1], {}); });
  EXPECT_EQ(y, (std::vector<double>{2, 20, 200, 3, 30, 300}));
}

TEST(DotGeneral, accumulates_bytes_in_i32) {
  const Literals y = evaluate({Literal::of<int8_t>({2}, {-128, -128}), Literal::of<int8_t>({2}, {127, 127})},
                              [](const Exprs& x) { return dot_general(x[0], x[1], {{0}, {0}, {}, {}}); });
  EXPECT_EQ(cat(y[0]), "i32[]{-32512}");
}

TEST(Einsum, contracts_three_operands) {
  const Literal a = f64({1, 2, 2}, {1, 2, 3, 4}), b = f64({2, 1}, {5, 6}), c = f64({2, 2}, {1, 0, 2, 1});
  // sum over j,k of a[i,j,k] b[k,l] c[j,m]: a b = [17, 39]; times c = [17 + 78, 39]
  const Literals y = evaluate({a, b, c}, [](const Exprs& x) { return einsum("ijk,kl,jm->iml", x); });
  expect_close(y[0], f64({1, 2, 1}, {95, 39}), 1e-15);
}

TEST(Einsum, takes_diagonals_traces_and_transposes) {
  const Literal a = f64({2, 2}, {1, 2, 3, 4});
  const auto run = [&](const char* equation) {
    return numbers({a}, [&](const Exprs& x) { return einsum(equation, x); });
  };
  EXPECT_EQ(run("ii->i"), (std::vector<double>{1, 4}));
  EXPECT_EQ(run("ii"), (std::vector<double>{5}));
  EXPECT_EQ(run("ij->j"), (std::vector<double>{4, 6}));
  EXPECT_EQ(run("ba"), (std::vector<double>{1, 3, 2, 4}));  // letters in alphabetical order: a transpose
}

TEST(Einsum, broadcasts_axes_under_the_dots) {
  const Literal a = f64({2, 1, 1, 2}, {1, 2, 3, 4}), b = f64({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  const Literals y = evaluate({a, b}, [](const Exprs& x) { return einsum("...ij,...jk->...ik", x); });
  expect_close(y[0], f64({2, 3, 1, 1}, {1, 2, 3, 3, 4, 7}), 1e-15);
}

TEST(Einsum, works_with_symbolic_sizes) {
  Graph g("symbolic");
  const Expr a{&g, g.input("a", parse_shape("f32[batch,seq,4]"))},
      b{&g, g.input("b", parse_shape("f32[4,seq]"))};
  EXPECT_EQ(cat(einsum("bsd,ds->bd", {a, b}).shape()), "f32[batch,4]");
}

TEST(DenseSolve, solves_for_vectors_and_matrices) {
  const Literal a = f64({2, 2}, {0, 2, 4, 1});  // the first pivot is 0: rows must be exchanged
  expect_close(evaluate({a, f64({2}, {2, 9})}, [](const Exprs& x) { return dense_solve(x[0], x[1]); })[0],
               f64({2}, {2, 1}), 1e-15);
  expect_close(
      evaluate({a, f64({2, 2}, {2, 0, 9, 4})}, [](const Exprs& x) { return dense_solve(x[0], x[1]); })[0],
      f64({2, 2}, {2, 1, 1, 0}), 1e-15);
}

TEST(BatchedDenseSolve, solves_each_system_with_its_own_matrix) {
  const Literal a = f64({2, 1, 1}, {2, 4}), b = f64({2, 1}, {6, 6});
  EXPECT_EQ(numbers({a, b}, [](const Exprs& x) { return batched_dense_solve(x[0], x[1]); }),
            (std::vector<double>{3, 1.5}));
}

TEST(BatchedDenseSolve, is_complex_where_its_operands_are) {
  const Shape m(DType::c64, {1, 1}), v(DType::c64, {1});
  const Literal a = Literal::complexes(m, std::vector<std::complex<double>>{{0, 2}});
  const Literal b = Literal::complexes(v, std::vector<std::complex<double>>{{4, 2}});
  const auto y = evaluate({a, b}, [](const Exprs& x) { return batched_dense_solve(x[0], x[1]); });
  EXPECT_EQ(y[0].complex_at(0), (std::complex<double>{1, -2}));
}

TEST(TriangularSolve, reads_one_triangle_only) {
  const Literal a = f64({2, 2}, {2, 7, 3, 4}), b = f64({2}, {4, 14});
  const auto run = [&](bool lower, bool transpose, bool unit) {
    return numbers({a, b},
                   [=](const Exprs& x) { return triangular_solve(x[0], x[1], lower, transpose, unit); });
  };
  EXPECT_EQ(run(true, false, false), (std::vector<double>{2, 2}));          // [[2,0],[3,4]]
  EXPECT_EQ(run(true, true, false), (std::vector<double>{-3.25, 3.5}));     // [[2,3],[0,4]]
  EXPECT_EQ(run(false, false, false), (std::vector<double>{-10.25, 3.5}));  // [[2,7],[0,4]]
  EXPECT_EQ(run(false, true, true), (std::vector<double>{4, -14}));         // [[1,0],[7,1]]
}

TEST(Cholesky, factors_a_known_matrix) {
  expect_close(evaluate({f64({2, 2}, {4, 2, 2, 5})}, [](const Exprs& x) { return cholesky(x[0]); })[0],
               f64({2, 2}, {2, 0, 1, 2}), 1e-15);
  // Only the symmetric part counts.
  expect_close(evaluate({f64({2, 2}, {4, 4, 0, 5})}, [](const Exprs& x) { return cholesky(x[0]); })[0],
               f64({2, 2}, {2, 0, 1, 2}), 1e-15);
}

TEST(Cholesky, of_complex_matrices_gives_them_back) {
  const Literal a = ir::sample_literal("c64[2,4,4] spd", 7);
  expect_close(evaluate({a},
                        [](const Exprs& x) {
                          const Expr y = cholesky(x[0]);
                          return matmul(y, adjoint(y));
                        })[0],
               a, 1e-5);
}

class Factored : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Factored,
                         testing::Values("f64[5,3]", "f64[3,5]", "f64[4,4]", "f64[2,6,2]", "f64[1,1]",
                                         "f64[7,1]"));

TEST_P(Factored, qr_gives_the_matrix_back_from_orthonormal_and_triangular_parts) {
  const Literal a = ir::sample_literal(GetParam(), 3);
  const Literals y = evaluate({a}, [](const Exprs& x) {
    const auto [q, r] = qr(x[0]);
    return Exprs{matmul(q, r), matmul(swap_last(q), q), lower_part(r, -1),
                 diagonal_of(matmul(swap_last(q), q))};
  });
  expect_close(y[0], a, 1e-13);
  for (const double d : y[3].to_reals()) EXPECT_NEAR(d, 1, 1e-13);
  for (const double d : y[2].to_reals()) EXPECT_EQ(d, 0);
}

TEST_P(Factored, svd_gives_the_matrix_back_with_descending_values) {
  const Literal a = ir::sample_literal(GetParam(), 4);
  const Literals y = evaluate({a}, [](const Exprs& x) {
    const auto [u, s, vt] = svd(x[0]);
    return Exprs{matmul(matmul(u, diagonal_matrix(s)), vt), matmul(swap_last(u), u),
                 matmul(vt, swap_last(vt)), s, svd_values(x[0])};
  });
  expect_close(y[0], a, 1e-13);
  const auto s = y[3].to_reals();
  const size_t k = size_t(y[3].shape().dim(-1).value());
  for (size_t i = 1; i < s.size(); ++i) {
    EXPECT_TRUE(i % k == 0 || s[i] <= s[i - 1]);
  }
  for (const int which : {1, 2}) {
    const auto p = y[size_t(which)].to_reals();
    for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], i / k % k == i % k ? 1 : 0, 1e-13);
  }
  expect_close(y[4], y[3], 1e-15);
}

TEST(Svd, of_a_matrix_without_full_rank_still_has_orthonormal_vectors) {
  const Literals y = evaluate({f64({3, 3}, {1, 2, 3, 2, 4, 6, 3, 6, 9})}, [](const Exprs& x) {
    const auto [u, s, vt] = svd(x[0]);
    return Exprs{s, matmul(swap_last(u), u)};
  });
  expect_close(y[0], f64({3}, {14, 0, 0}), 1e-13);
  expect_close(y[1], f64({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}), 1e-13);
}

TEST(Eigh, of_a_known_matrix) {
  // [[2,1],[1,2]] has 1 with (1,-1)/sqrt 2 and 3 with (1,1)/sqrt 2.
  const double h = std::sqrt(0.5);
  const Literals y = evaluate({f64({2, 2}, {2, 1, 1, 2})}, [](const Exprs& x) {
    const auto [w, v] = eigh(x[0]);
    return Exprs{w, v, eigh_values(x[0])};
  });
  expect_close(y[0], f64({2}, {1, 3}), 1e-15);
  expect_close(y[1], f64({2, 2}, {h, h, -h, h}), 1e-15);
  expect_close(y[2], y[0], 1e-15);
}

TEST(Eigh, gives_larger_matrices_back) {
  const Literal a = ir::sample_literal("f64[3,8,8] spd", 5);
  expect_close(evaluate({a},
                        [](const Exprs& x) {
                          const auto [w, v] = eigh(x[0]);
                          return matmul(matmul(v, diagonal_matrix(w)), swap_last(v));
                        })[0],
               a, 1e-13);
}

TEST(Det, counts_row_exchanges_and_is_zero_for_singular_matrices) {
  const Literal a = f64({3, 2, 2}, {0, 1, 1, 0, 1, 2, 2, 4, 3, 1, 2, 4});
  const Literals y = evaluate({a}, [](const Exprs& x) {
    const auto [sign, logabs] = slogdet(x[0]);
    return Exprs{det(x[0]), sign, logabs, logdet(x[0])};
  });
  expect_close(y[0], f64({3}, {-1, 0, 10}), 1e-14);
  expect_close(y[1], f64({3}, {-1, 0, 1}), 0);
  expect_close(y[2], f64({3}, {0, -INFINITY, std::log(10)}), 1e-15);
  expect_close(y[3], f64({3}, {NAN, -INFINITY, std::log(10)}), 1e-15);
}

TEST(Det, of_an_empty_matrix_is_one) {
  EXPECT_EQ(numbers({f64({2, 0, 0}, {})}, [](const Exprs& x) { return det(x[0]); }),
            (std::vector<double>{1, 1}));
}

TEST(Slogdet, does_not_overflow_where_the_determinant_does) {
  std::vector<double> v(40 * 40, 0.0);
  for (size_t i = 0; i < 40; ++i) v[i * 41] = 1e300;
  EXPECT_NEAR(evaluate({f64({40, 40}, v)}, [](const Exprs& x) { return slogdet(x[0]).logabs; })[0].real_at(0),
              40 * 300 * std::log(10.0), 1e-9);
}

TEST(Inverse, times_the_matrix_is_one) {
  const Literal a = ir::sample_literal("f64[2,5,5] solvable", 9);
  const auto y = numbers({a}, [](const Exprs& x) { return matmul(inverse(x[0]), x[0]); });
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], i / 5 % 5 == i % 5 ? 1 : 0, 1e-14);
}

}  // namespace
}  // namespace rlx::ops
