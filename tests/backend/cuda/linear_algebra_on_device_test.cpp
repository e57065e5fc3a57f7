// QR, eigenvalues and singular values on a GPU: equal to the interpreter where the operators say which factors they mean, and
// multiplied back where rounding decides. Without a GPU all kernels of linear algebra compile.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/matrices_on_device.h"

namespace rlx {
namespace {

using test::batch_of;
using test::LinearAlgebraOnDevice;
using test::sample;
using test::Values;

struct Matrix {
  int64_t rows = 0, columns = 0;
  const double* at = nullptr;
  double operator()(int64_t i, int64_t j) const { return at[i * columns + j]; }
};

class FactorsOnDevice : public LinearAlgebraOnDevice, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Size, FactorsOnDevice, testing::Values(1, 2, 3, 17, 32, 33, 64, 100, 200, 300),
                         testing::PrintToStringParamName());

TEST_F(LinearAlgebraOnDevice, numbers_that_are_none) {
  Values v(9, 1.0);
  v[0] = NAN;
  const Literal a = Literal::reals(parse_shape("f64[3,3]"), v);
  compare(
      "graph @f(a: f64[3,3]) { y:2 = qr(a) e:2 = eigh(a) s:3 = svd(a) return q=y, r=y#1, w=e, v=e#1, u=s, s=s#1, t=s#2 }",
      {{"a", a}}, 0);
  compare("graph @f(a: f64[3,3]) { y = det(a) return y }", {{"a", a}}, 0);
}

// |a - b| <= near * (1 + |a|) for all elements of products.
template <class Term>
void expect_product(int64_t rows, int64_t columns, int64_t inner, Term term, const Matrix& want,
                    double near) {
  int shown = 0;
  for (int64_t i = 0; i < rows && shown < 3; ++i) {
    for (int64_t j = 0; j < columns && shown < 3; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < inner; ++c) sum += term(i, j, c);
      const double w = want.at ? want(i, j) : i == j ? 1 : 0;
      if (std::fabs(sum - w) <= near * (1 + std::fabs(w))) continue;
      ++shown;
      ADD_FAILURE() << "element " << i << ", " << j << ": got " << sum << ", expected " << w;
    }
  }
}

// Columns have length 1 and are orthogonal, rows where `by_rows`.
void expect_unit(const Matrix& x, bool by_rows, double near) {
  const int64_t k = by_rows ? x.rows : x.columns, inner = by_rows ? x.columns : x.rows;
  expect_product(
      k, k, inner,
      [&](int64_t i, int64_t j, int64_t c) { return by_rows ? x(i, c) * x(j, c) : x(c, i) * x(c, j); }, {},
      near);
}

void expect_signs(const Matrix& u) {
  for (int64_t j = 0; j < u.columns; ++j) {
    double largest = 0;
    for (int64_t i = 0; i < u.rows; ++i) {
      if (std::fabs(u(i, j)) > std::fabs(largest) * 1.001) largest = u(i, j);
    }
    // Near the limit rounding to f32 or f16 may have moved the first of the largest.
    double most = 0;
    for (int64_t i = 0; i < u.rows; ++i) most = std::max(most, u(i, j));
    EXPECT_GE(most, std::fabs(largest) * 0.99) << "column " << j;
  }
}

double near_of(const std::string& type, int64_t n) {
  return (type == "f64"   ? 1e-13
          : type == "f32" ? 2e-6
          : type == "f16" ? 4e-3
                          : 3e-2) *
         std::sqrt(double(n) + 4);
}

// Square, tall and wide ones of about n.
std::vector<std::pair<int64_t, int64_t>> rectangles(int64_t n) {
  if (n == 1) return {{1, 1}, {40, 1}, {1, 3}};
  if (test::is_sanitized() && n > 64) return {{n, n}};
  return {{n, n}, {n, n / 2 + 1}, {n / 2 + 1, n}};
}

void expect_qr(const Matrix& a, const Matrix& q, const Matrix& r, double near) {
  expect_product(
      a.rows, a.columns, q.columns, [&](int64_t i, int64_t j, int64_t c) { return q(i, c) * r(c, j); }, a,
      near);
  expect_unit(q, false, near);
  for (int64_t i = 0; i < r.rows; ++i) {
    EXPECT_GE(r(i, i), 0);
    for (int64_t j = 0; j < i; ++j) EXPECT_EQ(r(i, j), 0);
  }
}

// Rotations of more than 100 rows are more of the same pairs of 32 columns, and take minutes under compute-sanitizer.
bool repeats_rotations(int64_t n) { return test::is_sanitized() && n > 100; }

TEST_P(FactorsOnDevice, qr) {
  for (const char* type : {"f32", "f64", "f16"}) {
    if (test::is_left_out(GetParam(), type)) continue;
    for (const auto& [m, n] : rectangles(GetParam())) {
      const int64_t k = std::min(m, n), batch = batch_of(m);
      const std::string a = cat(type, "[", batch, ",", m, ",", n, "]"),
                        text = cat("graph @f(a: ", a, ") { y:2 = qr(a) return q=y, r=y#1 }");
      const NamedLiterals leaves = {{"a", sample(a, 11)}};
      SCOPED_TRACE(a);
      const NamedLiterals got = run(text, leaves);
      const Values A = leaves.at("a").to_reals(), Q = got.at("q").to_reals(), R = got.at("r").to_reals();
      for (int64_t b = 0; b < batch; ++b)
        expect_qr({m, n, A.data() + b * m * n}, {m, k, Q.data() + b * m * k}, {k, n, R.data() + b * k * n},
                  near_of(type, m + n));
      if (type == std::string("f64") && m * n < 1200) compare(text, leaves, 1e-8);
    }
  }
}

TEST_F(LinearAlgebraOnDevice, qr_of_dependent_columns_and_of_long_ones) {
  compare("graph @f(a: f64[3,3]) { y:2 = qr(a) return r=y#1 }",
          {{"a", test::f64({3, 3}, {0, 0, 3, 0, 0, 4, 0, 0, 0})}}, 1e-14);
  compare("graph @f(a: f64[3,2]) { y:2 = qr(a) return q=y, r=y#1 }",
          {{"a", test::f64({3, 2}, {0, 0, 0, 0, 0, 0})}}, 0);
  // Two panels; one that does not fit a block; two of columns that do not.
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{2000, 20}, {8000, 5}, {30000, 18}}) {
    const NamedLiterals leaves = {{"a", sample(cat("f64[", m, ",", n, "]"), 11)}};
    const NamedLiterals got =
        run(cat("graph @f(a: f64[", m, ",", n, "]) { y:2 = qr(a) return q=y, r=y#1 }"), leaves);
    const Values A = leaves.at("a").to_reals(), Q = got.at("q").to_reals(), R = got.at("r").to_reals();
    expect_qr({m, n, A.data()}, {m, n, Q.data()}, {n, n, R.data()}, 1e-11);
  }
}

TEST_P(FactorsOnDevice, eigh) {
  const int64_t n = GetParam(), batch = batch_of(n);
  if (repeats_rotations(n)) GTEST_SKIP();
  for (const char* type : {"f32", "f64", "bf16"}) {
    if ((n > 64 && type == std::string("bf16")) || test::is_left_out(n, type)) continue;
    const std::string a = cat(type, "[", batch, ",", n, ",", n, "]"),
                      text = cat("graph @f(a: ", a, ") { e:2 = eigh(a) return w=e, v=e#1 }");
    const NamedLiterals leaves = {{"a", sample(a, 13)}};
    SCOPED_TRACE(a);
    const NamedLiterals got = run(text, leaves);
    const Values A = leaves.at("a").to_reals(), W = got.at("w").to_reals(), V = got.at("v").to_reals();
    const double near = near_of(type, n) * 2;
    for (int64_t b = 0; b < batch; ++b) {
      Values symmetric(size_t(n * n));
      for (int64_t i = 0; i < n * n; ++i)
        symmetric[size_t(i)] = (A[size_t(b * n * n + i)] + A[size_t(b * n * n + i % n * n + i / n)]) / 2;
      const Matrix v{n, n, V.data() + b * n * n};
      const double* const w = W.data() + b * n;
      for (int64_t i = 1; i < n; ++i) EXPECT_LE(w[i - 1], w[i]);
      expect_product(
          n, n, n, [&](int64_t i, int64_t j, int64_t c) { return v(i, c) * w[c] * v(j, c); },
          {n, n, symmetric.data()}, near * std::sqrt(double(n)));
      expect_unit(v, false, near);
      expect_signs(v);
    }
    if (type == std::string("f64") && n <= 33) compare(text, leaves, 1e-8);
  }
}

TEST_P(FactorsOnDevice, svd) {
  if (repeats_rotations(GetParam())) GTEST_SKIP();
  for (const char* type : {"f32", "f64", "bf16"}) {
    if ((GetParam() > 64 && type == std::string("bf16")) || test::is_left_out(GetParam(), type)) continue;
    for (const auto& [m, n] : rectangles(GetParam())) {
      const int64_t k = std::min(m, n), batch = m > 100 ? 1 : batch_of(m);
      const std::string a = cat(type, "[", batch, ",", m, ",", n, "]"),
                        text = cat("graph @f(a: ", a, ") { s:3 = svd(a) return u=s, s=s#1, t=s#2 }");
      const NamedLiterals leaves = {{"a", sample(a, 17)}};
      SCOPED_TRACE(a);
      const NamedLiterals got = run(text, leaves);
      const Values A = leaves.at("a").to_reals(), U = got.at("u").to_reals(), S = got.at("s").to_reals(),
                   T = got.at("t").to_reals();
      const double near = near_of(type, m + n) * 2;
      for (int64_t b = 0; b < batch; ++b) {
        const Matrix u{m, k, U.data() + b * m * k}, t{k, n, T.data() + b * k * n};
        const double* const s = S.data() + b * k;
        for (int64_t i = 0; i < k; ++i) {
          EXPECT_GE(s[i], 0);
          EXPECT_GE(s[std::max<int64_t>(i, 1) - 1], s[i]);
        }
        expect_product(
            m, n, k, [&](int64_t i, int64_t j, int64_t c) { return u(i, c) * s[c] * t(c, j); },
            {m, n, A.data() + b * m * n}, near * std::sqrt(double(k)));
        expect_unit(u, false, near);
        expect_unit(t, true, near);
        expect_signs(u);
      }
      if (type == std::string("f64") && m * n <= 1200) compare(text, leaves, 1e-8);
    }
  }
}

// Equal values, zeros, scales at the ends of the range.
TEST_P(FactorsOnDevice, values_of_a_matrix_of_rank_one) {
  const int64_t n = GetParam();
  if (repeats_rotations(n)) GTEST_SKIP();
  for (const double scale : {1.0, 1e-200, 1e200}) {
    if (n > (test::is_sanitized() ? 64 : 100) && scale != 1) continue;
    const Literal a = Literal::reals(parse_shape(cat("f64[", n, ",", n, "]")), Values(size_t(n * n), scale));
    const NamedLiterals got = run(
        cat("graph @f(a: f64[", n, ",", n, "]) { e:2 = eigh(a) s:3 = svd(a) return w=e, v=e#1, s=s#1, u=s }"),
        {{"a", a}});
    const Values w = got.at("w").to_reals(), s = got.at("s").to_reals(), v = got.at("v").to_reals(),
                 u = got.at("u").to_reals();
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(w[size_t(n - 1 - i)] / scale, i == 0 ? double(n) : 0, 1e-12 * double(n));
      EXPECT_NEAR(s[size_t(i)] / scale, i == 0 ? double(n) : 0, 1e-12 * double(n));
    }
    expect_unit({n, n, v.data()}, false, 1e-11);
    expect_unit({n, n, u.data()}, false, 1e-11);
  }
}

TEST_F(LinearAlgebraOnDevice, values_of_known_matrices) {
  compare("graph @f(a: f64[3,3]) { e:2 = eigh(a) s:3 = svd(a) return w=e, v=e#1, u=s, s=s#1, t=s#2 }",
          {{"a", test::f64({3, 3}, {0, 0, 0, 0, 0, 0, 0, 0, 0})}}, 0);
  compare("graph @f(a: f64[2,2]) { e:2 = eigh(a) return w=e, v=e#1 }",
          {{"a", test::f64({2, 2}, {2, 1, 1, 2})}}, 1e-14);
  // Small singular values keep their digits: columns of lengths 1 to 1e-11.
  Values v = sample("f64[12,12]", 19).to_reals();
  for (size_t i = 0; i < v.size(); ++i) v[i] *= std::pow(10.0, -double(i % 12));
  const std::string text = "graph @f(a: f64[12,12]) { s:3 = svd(a) return s=s#1 }";
  const NamedLiterals leaves = {{"a", Literal::reals(parse_shape("f64[12,12]"), v)}};
  const Values got = run(text, leaves).at("s").to_reals(),
               want = ir::interpret(test::graph(text), leaves).at("s").to_reals();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-11 * want[i]) << i;
}

// Square, tall and wide, of one block and of several; a column that others make.
TEST_F(LinearAlgebraOnDevice, factors_of_complex_matrices) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 5}, {40, 33}, {3, 7}}) {
    const std::string a = cat("c64[2,", m, ",", n, "]"),
                      square = m >= n ? cat("matmul(adjoint, a)") : cat("matmul(a, adjoint)");
    const std::string text =
        cat("graph @f(a: ", a, ") { t = transpose(a, perm=[0,2,1]) adjoint = conjugate(t) b = ", square,
            " q:2 = qr(a) e:2 = eigh(b) s:3 = svd(a) return q=q, r=q#1, w=e, v=e#1, u=s, s=s#1, t=s#2 }");
    compare(text, {{"a", sample(a, 23)}}, 2e-4);
  }
  Literal a = sample("c64[4,3]", 29);
  const auto bytes = a.mutable_bytes();
  for (size_t row = 0; row < 4; ++row)
    std::copy_n(bytes.begin() + row * 24, 8, bytes.begin() + row * 24 + 16);
  compare("graph @f(a: c64[4,3]) { q:2 = qr(a) s:3 = svd(a) return r=q#1, s=s#1 }", {{"a", a}}, 1e-5);
}

// ---- without a GPU ----

class LinearAlgebra : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cuda, LinearAlgebra, testing::Values("sm_90a", "sm_80"));

TEST_P(LinearAlgebra, compiles_at_any_size) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device device(GetParam(), nullptr);
  const backend::Builder builder(device, 1);
  const auto build = [&](const std::string& text) {
    std::vector<passes::Remark> remarks;
    const auto program = builder.build(runtime::specialise(test::graph(text), device, {}, remarks));
    for (const auto& step : program->plan().steps) EXPECT_NE(step.kernel, "on_host") << text;
  };
  for (const char* type : {"f32", "c64"}) {
    for (const int64_t n : {40, 2048}) {
      const std::string a = cat(type, "[2,", n, ",", n, "]");
      build(cat(
          "graph @f(a: ", a, ", b: ", a,
          ") { x = batched_dense_solve(a, b) y = triangular_solve(a, b) i = inverse(a) d = det(a) s:2 = slogdet(a) "
          "c = cholesky(a) return x=x, y=y, i=i, d=d, s=s, l=s#1, c=c }"));
      build(cat(
          "graph @f(a: ", a,
          ") { q:2 = qr(a) e:2 = eigh(a) s:3 = svd(a) return q=q, r=q#1, w=e, v=e#1, u=s, s=s#1, t=s#2 }"));
    }
  }
  build(
      "graph @f(a: f32[2,5,5]) { t = transpose(a, perm=[0,2,1]) y = inverse(t) q:2 = qr(t) return y=y, r=q#1 }");
  build("graph @f(a: f64[6100,6100], b: f64[6100,1]) { x = dense_solve(a, b) d = det(a) return x=x, d=d }");
  EXPECT_GT(device.functions().compile_waiting(), 20u);
}

}  // namespace
}  // namespace rlx
