// Decompositions of matrices at every scale, of complex matrices, and their derivatives where values repeat.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/linalg/adjugate.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/svd.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/transform/transform.h"
#include "tests/support/evaluate.h"
#include "tests/support/graphs.h"

namespace rlx::ops {
namespace {

using test::evaluate;
using test::expect_close;
using test::expect_values;
using test::f64;
using test::graph;
using Complex = std::complex<double>;

Literal scaled(const Literal& x, double factor) {
  std::vector<double> v = x.to_reals();
  for (double& e : v) e *= factor;
  return Literal::reals(x.shape(), v);
}

void expect_ratio(double got, double want, double tolerance = 1e-13) {
  EXPECT_NEAR(got / want, 1, tolerance) << got << " and " << want;
}

class AtScale : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Powers, AtScale, testing::Values(1e-305, 1e-200, 1e-77, 1.0, 1e77, 1e200, 1e305));

TEST_P(AtScale, svd_has_the_values_and_vectors_of_the_matrix_at_scale_one) {
  const Literal a = f64({2, 2}, {1, 2, 3, 4});
  const auto run = [](const Literal& x) {
    return evaluate({x}, [](const Exprs& in) {
      const auto [u, s, vt] = svd(in[0]);
      return Exprs{u, s, vt, svd_values(in[0])};
    });
  };
  const Literals one = run(a), y = run(scaled(a, GetParam()));
  expect_close(y[0], one[0], 1e-14);
  expect_close(y[2], one[2], 1e-14);
  for (int64_t i = 0; i < 2; ++i) {
    expect_ratio(y[1].real_at(i) / GetParam(), one[1].real_at(i));
    EXPECT_EQ(y[3].real_at(i), y[1].real_at(i));
  }
  expect_ratio(one[1].real_at(0), 5.464985704219043);  // sqrt(15 + sqrt(221))
}

TEST_P(AtScale, eigh_has_the_values_and_vectors_of_the_matrix_at_scale_one) {
  const Literal a = f64({3, 3}, {2, 1, 0, 1, 2, 1, 0, 1, 2});
  const auto run = [](const Literal& x) {
    return evaluate({x}, [](const Exprs& in) {
      const auto [w, v] = eigh(in[0]);
      return Exprs{w, v};
    });
  };
  const Literals one = run(a), y = run(scaled(a, GetParam()));
  expect_close(y[1], one[1], 1e-14);
  for (int64_t i = 0; i < 3; ++i)
    expect_ratio(y[0].real_at(i) / GetParam(), 2 + (double(i) - 1) * std::sqrt(2.0));
}

TEST_P(AtScale, qr_gives_the_matrix_back) {
  const Literal a = scaled(ir::sample_literal("f64[4,3]", 3), GetParam());
  const Literals y = evaluate({a}, [](const Exprs& in) {
    const auto [q, r] = qr(in[0]);
    return Exprs{matmul(q, r), matmul(adjoint(q), q)};
  });
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_NEAR(y[0].real_at(i) / GetParam(), a.real_at(i) / GetParam(), 1e-14);
  expect_close(y[1], f64({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}), 1e-14);
}

TEST_P(AtScale, gradients_of_vectors_are_those_at_scale_one_divided) {
  const auto slope = [](const char* text, double scale) {
    const auto d = transform::grad(graph(text), {"a"});
    return ir::interpret(d,
                         Literals{scaled(f64({2, 2}, {1, 2, 2, 4.5}), scale), f64({2, 2}, {1, -2, 3, 5})})[0];
  };
  for (const char* text :
       {"graph(a: f64[2,2], c: f64[2,2]) { e:2 = eigh(a) return reduce(mul(e#1, c)) }",
        "graph(a: f64[2,2], c: f64[2,2]) { e:3 = svd(a) return reduce(mul(matmul(e, e#2), c)) }"}) {
    const Literal one = slope(text, 1), far = slope(text, GetParam());
    for (int64_t i = 0; i < 4; ++i) {
      const double want = one.real_at(i) / GetParam();
      if (!std::isfinite(want)) continue;
      EXPECT_NEAR(far.real_at(i), want, 1e-10 * std::fabs(one.real_at(1) / GetParam()));
    }
  }
}

TEST(Decompositions, of_what_is_not_finite_are_not_numbers) {
  const Literal a = f64({2, 2}, {1, INFINITY, 2, 3});
  const Literals y = evaluate({a}, [](const Exprs& in) {
    return Exprs{svd(in[0]).u, svd(in[0]).s, eigh(in[0]).v, eigh(in[0]).w, qr(in[0]).q, qr(in[0]).r};
  });
  for (const Literal& x : y) {
    for (const double e : x.to_reals()) EXPECT_TRUE(std::isnan(e));
  }
}

class ComplexFactors : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ComplexFactors,
                         testing::Values("c64[4,3]", "c64[3,4]", "c64[3,3]", "c64[2,5,2]", "c64[1,1]",
                                         "c64[4,1]"));

void expect_identity(const Literal& x, double tolerance) {
  const int64_t n = x.shape().dim(-1).value();
  for (int64_t i = 0; i < x.elements(); ++i)
    EXPECT_LE(std::abs(x.complex_at(i) - Complex(i / n % n == i % n ? 1 : 0)), tolerance) << i;
}

TEST_P(ComplexFactors, svd_gives_the_matrix_back) {
  const Literal a = ir::sample_literal(GetParam(), 4);
  const Literals y = evaluate({a}, [](const Exprs& in) {
    const auto [u, s, vt] = svd(in[0]);
    return Exprs{matmul(matmul(u, cast(diagonal_matrix(s), DType::c64)), vt), matmul(adjoint(u), u),
                 matmul(vt, adjoint(vt)), s};
  });
  expect_close(y[0], a, 1e-5);
  expect_identity(y[1], 1e-6);
  expect_identity(y[2], 1e-6);
  EXPECT_EQ(y[3].dtype(), DType::f32);
}

TEST_P(ComplexFactors, qr_gives_the_matrix_back_with_a_real_diagonal) {
  const Literal a = ir::sample_literal(GetParam(), 5);
  const Literals y = evaluate({a}, [](const Exprs& in) {
    const auto [q, r] = qr(in[0]);
    return Exprs{matmul(q, r), matmul(adjoint(q), q), r, lower_part(r, -1)};
  });
  expect_close(y[0], a, 1e-5);
  expect_identity(y[1], 1e-6);
  for (const Complex z : y[3].to_complexes()) EXPECT_EQ(z, Complex(0));
  const int64_t k = y[2].shape().dim(-2).value(), n = y[2].shape().dim(-1).value();
  for (int64_t i = 0; i < y[2].elements(); ++i) {
    if (i / n % k != i % n) continue;
    EXPECT_EQ(y[2].complex_at(i).imag(), 0);
    EXPECT_GE(y[2].complex_at(i).real(), 0);
  }
}

TEST(ComplexEigh, of_a_known_matrix) {
  // [[2, i], [-i, 2]] has 1 with (1, i) / sqrt 2 and 3 with (1, -i) / sqrt 2.
  const Literal a =
      Literal::complexes(Shape(DType::c64, {2, 2}), std::vector<Complex>{2, {0, 1}, {0, -1}, 2});
  const Literals y = evaluate({a}, [](const Exprs& in) {
    const auto [w, v] = eigh(in[0]);
    return Exprs{w, v, eigh_values(in[0])};
  });
  const double h = std::sqrt(0.5);
  EXPECT_NEAR(y[0].real_at(0), 1, 1e-6);
  EXPECT_NEAR(y[0].real_at(1), 3, 1e-6);
  expect_close(y[1], Literal::complexes(a.shape(), std::vector<Complex>{h, h, {0, h}, {0, -h}}), 1e-6);
  EXPECT_EQ(y[2], y[0]);
}

TEST(ComplexEigh, gives_larger_matrices_back) {
  const Literal a = ir::sample_literal("c64[2,5,5] spd", 5);
  const Literals y = evaluate({a}, [](const Exprs& in) {
    const auto [w, v] = eigh(in[0]);
    return Exprs{matmul(matmul(v, cast(diagonal_matrix(w), DType::c64)), adjoint(v)), matmul(adjoint(v), v)};
  });
  expect_close(y[0], a, 1e-5);
  expect_identity(y[1], 1e-6);
}

TEST(ComplexSlogdet, is_a_phase_and_the_logarithm_of_the_modulus) {
  const Literal a = Literal::complexes(Shape(DType::c64, {2, 2}),
                                       std::vector<Complex>{{0, 2}, 1, {3, 1}, {0, 0}});  // det -3 - i
  const Literals y =
      evaluate({a}, [](const Exprs& in) { return Exprs{slogdet(in[0]).sign, slogdet(in[0]).logabs}; });
  EXPECT_NEAR(std::abs(y[0].complex_at(0) - Complex(-3, -1) / std::sqrt(10.0)), 0, 1e-6);
  EXPECT_NEAR(y[1].real_at(0), 0.5 * std::log(10.0), 1e-6);
}

// s = <c, a^2> through the decomposition: smooth, but not by way of vectors that belong to one value.
const char* kSquareByEigh = R"(graph(a: f64[3,3], c: f64[3,3]) {
  e:2 = eigh(a)
  m = matmul(mul(e#1, reshape(mul(e, e), shape=(1, 3))), transpose(e#1))
  return reduce(mul(m, c))
})";

TEST(RepeatedValues, a_gradient_through_their_vectors_is_nan_in_both_modes) {
  const Literal two = f64({3, 3}, {2, 0, 0, 0, 2, 0, 0, 0, 5}), c = f64({3, 3}, {0, 1, 0, 1, 0, 2, 0, 2, 1});
  const auto g = graph(kSquareByEigh);
  for (const double d : ir::interpret(transform::grad(g, {"a"}), Literals{two, c})[0].to_reals())
    EXPECT_TRUE(std::isnan(d));
  const Literal along = f64({3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 0});
  EXPECT_TRUE(std::isnan(ir::interpret(transform::jvp(g, {"a"}), Literals{two, c, along})[1].real_at(0)));
  const auto by_svd =
      graph("graph(a: f64[3,3], c: f64[3,3]) { e:3 = svd(a) return reduce(mul(matmul(e, e#2), c)) }");
  for (const double d : ir::interpret(transform::grad(by_svd, {"a"}), Literals{two, c})[0].to_reals())
    EXPECT_TRUE(std::isnan(d));
}

TEST(RepeatedValues, a_gradient_that_treats_them_alike_is_right) {
  const Literal two = f64({3, 3}, {2, 0, 0, 0, 2, 0, 0, 0, 5});
  const std::vector<double> cubes{12, 0, 0, 0, 12, 0, 0, 0, 75};  // 3 a^2
  for (const char* values : {"eigh_values", "svd_values"}) {
    const auto g = graph(cat("graph(a: f64[3,3]) { w = ", values, "(a) return reduce(mul(w, mul(w, w))) }"));
    expect_values(ir::interpret(transform::grad(g, {"a"}), Literals{two})[0], cubes);
  }
  // The largest value alone is not smooth where it is repeated, and smooth where another one is.
  const auto last = graph("graph(a: f64[3,3]) { return reduce(narrow(eigh_values(a), start=2, len=1)) }");
  const auto first = graph("graph(a: f64[3,3]) { return reduce(narrow(eigh_values(a), start=0, len=1)) }");
  expect_values(ir::interpret(transform::grad(last, {"a"}), Literals{two})[0], {0, 0, 0, 0, 0, 0, 0, 0, 1});
  for (const double d : ir::interpret(transform::grad(first, {"a"}), Literals{two})[0].to_reals())
    EXPECT_TRUE(std::isnan(d));
}

TEST(RepeatedValues, vectors_of_other_values_keep_their_gradient) {
  // d v_2 by a symmetric change h of a: sum over i < 2 of v_i h_i2 / (5 - 2).
  const auto g = graph(R"(graph(a: f64[3,3], c: f64[3]) {
    e:2 = eigh(a)
    return reduce(mul(reshape(narrow(e#1, axis=1, start=2, len=1), shape=(3)), c))
  })");
  const Literal two = f64({3, 3}, {2, 0, 0, 0, 2, 0, 0, 0, 5}), c = f64({3}, {6, 12, 1});
  expect_values(ir::interpret(transform::grad(g, {"a"}), Literals{two, c})[0], {0, 0, 1, 0, 0, 2, 1, 2, 0});
}

TEST(SvdValues, a_value_that_is_zero_has_derivative_zero) {
  const auto g = graph("graph(a: f64[2,2]) { return reduce(svd_values(a)) }");
  expect_values(ir::interpret(transform::grad(g, {"a"}), Literals{f64({2, 2}, {3, 0, 0, 0})})[0],
                {1, 0, 0, 0});
}

TEST(Det, of_singular_matrices_has_the_adjugate_for_its_gradient) {
  const auto g = graph("graph(a: f64[3,3]) { return det(a) }");
  const auto slope = [&](std::vector<double> a) {
    return ir::interpret(transform::grad(g, {"a"}), Literals{f64({3, 3}, std::move(a))})[0];
  };
  // Rank 2, exactly and but for rounding; rank 1; nothing at all. The cofactors by hand.
  expect_values(slope({1, 2, 3, 4, 5, 6, 7, 8, 9}), {-3, 6, -3, 6, -12, 6, -3, 6, -3}, 1e-12);
  expect_values(slope({1, 0, 0, 0, 1, 0, 0, 0, 0}), {0, 0, 0, 0, 0, 0, 0, 0, 1}, 1e-15);
  expect_values(slope({1, 1, 1, 1, 1, 1, 1, 1, 1}), std::vector<double>(9, 0.0), 1e-14);
  expect_values(slope(std::vector<double>(9, 0.0)), std::vector<double>(9, 0.0));
}

TEST(Det, of_singular_matrices_has_second_derivatives) {
  // det of 2 x 2: d^2 det / (da_00 da_11) = 1 = -d^2 det / (da_01 da_10), whatever a is.
  const auto g = graph("graph(a: f64[2,2]) { return det(a) }");
  const std::vector<double> want{0, 0, 0, 1, 0, 0, -1, 0, 0, -1, 0, 0, 1, 0, 0, 0};
  for (const std::vector<double>& a :
       {std::vector<double>{1, 2, 2, 4}, {0, 0, 0, 0}, {1, 0, 0, 1}, {3, 1, -2, 5}})
    expect_values(ir::interpret(transform::hessian(g, "a"), Literals{f64({2, 2}, a)})[0], want, 1e-13);
}

TEST(Adjugate, times_the_matrix_is_the_determinant) {
  for (const char* type : {"f64[2,4,4]", "c64[3,3]"}) {
    const Literal a = ir::sample_literal(type, 8);
    const Literals y = evaluate({a}, [](const Exprs& in) {
      const Expr d = unsqueeze(unsqueeze(det(in[0]), -1), -1);
      return Exprs{matmul(in[0], adjugate(in[0])), d * identity_like(in[0])};
    });
    expect_close(y[0], y[1], is_complex(a.dtype()) ? 1e-5 : 1e-12);
  }
}

}  // namespace
}  // namespace rlx::ops
