// Linear systems, inverses, determinants and Cholesky factors on a GPU: equal to the interpreter, in one block and in panels.
#include <gtest/gtest.h>

#include "rlx/backend/cuda/fault.h"
#include "tests/backend/cuda/matrices_on_device.h"

namespace rlx {
namespace {

using test::batch_of;
using test::LinearAlgebraOnDevice;
using test::sample;
using test::Values;

class SystemsOnDevice : public LinearAlgebraOnDevice, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Size, SystemsOnDevice, testing::Values(1, 2, 3, 17, 32, 33, 64, 100, 200, 300),
                         testing::PrintToStringParamName());

// What random well-conditioned systems of n rows lose.
double loss(const char* type, int64_t n) {
  const std::string t = type;
  const double unit = t == "f64" ? 1e-13 : t == "f32" || t == "c64" ? 3e-6 : t == "f16" ? 2e-3 : 2e-2;
  return unit * std::sqrt(double(n) + 4);
}

// Far from singular: a random matrix with more than its number of rows on the diagonal.
Literal dominant(const std::string& type, int64_t batch, int64_t n, uint64_t seed) {
  Literal a = ir::sample_literal(cat("f64[", batch, ",", n, ",", n, "]"), seed);
  Values v = a.to_reals();
  for (size_t i = 0; i < v.size(); ++i) {
    if (int64_t(i) / n % n == int64_t(i) % n) v[i] += double(n) + 3;
  }
  return Literal::reals(parse_shape(cat(type, "[", batch, ",", n, ",", n, "]")), v);
}

TEST_P(SystemsOnDevice, triangular_solve) {
  const int64_t n = GetParam(), batch = batch_of(n);
  for (const char* type : {"f32", "f64", "c64", "f16"}) {
    if (test::is_left_out(n, type)) continue;
    for (const int64_t k : {1, 70}) {
      const bool complex = type == std::string("c64");
      const NamedLiterals leaves = {
          {"a", complex ? sample(cat("c64[", batch, ",", n, ",", n, "] solvable"), 3)
                        : dominant(type, batch, n, 3)},
          {"b", sample(cat(type, "[", batch, ",", n, ",", k, "]"), 4)}};
      for (const char* how : {"", ", transpose=true", ", lower=false", ", lower=false, transpose=true"})
        compare(cat("graph @f(a: ", type, "[", batch, ",", n, ",", n, "], b: ", type, "[", batch, ",", n, ",",
                    k, "]) { y = triangular_solve(a, b", how, ") return y }"),
                leaves, complex ? 1e-3 : loss(type, n));
    }
  }
}

TEST_F(LinearAlgebraOnDevice, triangular_solve_with_ones_on_the_diagonal) {
  compare("graph @f(a: f64[40,40], b: f64[40]) { y = triangular_solve(a, b, unit_diagonal=true) return y }",
          {{"a", sample("f64[40,40] in -0.1..0.1", 1)}, {"b", sample("f64[40]", 2)}}, 1e-12);
}

TEST_P(SystemsOnDevice, systems_inverses_and_determinants) {
  const int64_t n = GetParam(), batch = batch_of(n);
  for (const char* type : {"f32", "f64", "bf16"}) {
    if (test::is_left_out(n, type)) continue;
    const std::string a = cat(type, "[", batch, ",", n, ",", n, "]");
    const Literal matrices = dominant(type, batch, n, 5);
    for (const int64_t k : {1, 40}) {
      const std::string b = cat(type, "[", batch, ",", n, ",", k, "]");
      compare(cat("graph @f(a: ", a, ", b: ", b, ") { y = batched_dense_solve(a, b) return y }"),
              {{"a", matrices}, {"b", sample(b, 6)}}, loss(type, n));
    }
    compare(cat("graph @f(a: ", a, ") { y = inverse(a) s:2 = slogdet(a) return y=y, s=s, l=s#1 }"),
            {{"a", matrices}}, loss(type, n));
  }
}

TEST_F(LinearAlgebraOnDevice, determinants_and_complex_systems) {
  for (const int64_t n : {1, 3, 17, 30}) {
    const std::string a = cat("f64[3,", n, ",", n, "]"), c = cat("c64[3,", n, ",", n, "]");
    compare(cat("graph @f(a: ", a, ") { y = det(a) return y }"), {{"a", sample(a + " in -0.5..0.5", 7)}},
            1e-11);
    compare(
        cat("graph @f(a: ", c, ", b: c64[3,", n,
            ",2]) { y = batched_dense_solve(a, b) i = inverse(a) s:2 = slogdet(a) return y=y, i=i, s=s, l=s#1 }"),
        {{"a", sample(c + " solvable", 8)}, {"b", sample(cat("c64[3,", n, ",2]"), 9)}}, 1e-3);
  }
}

TEST_F(LinearAlgebraOnDevice, complex_matrices_in_panels) {
  compare(
      "graph @f(a: c64[180,180], b: c64[180,2]) { y = dense_solve(a, b) s:2 = slogdet(a) return y=y, s=s, l=s#1 }",
      {{"a", sample("c64[180,180] solvable", 8)}, {"b", sample("c64[180,2]", 9)}}, 1e-3);
  compare("graph @f(a: c64[180,180]) { y = cholesky(a) return y }", {{"a", sample("c64[180,180] spd", 5)}},
          1e-3);
}

// Rows change places: the first of the largest is the pivot, as in the reference rule. Panels, too.
// As systems of so many rows that not even four columns fit a block.
TEST_F(LinearAlgebraOnDevice, panels_in_memory) {
  setenv("RLX_CUDA_PANELS", "0", 1);
  for (const char* type : {"f64", "c64"}) {
    const std::string a = cat(type, "[2,70,70]"), b = cat(type, "[2,70,3]");
    compare(
        cat("graph @f(a: ", a, ", b: ", b,
            ") { x = batched_dense_solve(a, b) i = inverse(a) s:2 = slogdet(a) return x=x, i=i, s=s, l=s#1 }"),
        {{"a", sample(cat(a, " solvable"), 41)}, {"b", sample(b, 42)}}, loss(type, 70) * 30);
  }
  const Literal zero = Literal::zeros(parse_shape("f64[2,35,35]"));
  expect_error("graph @f(a: f64[2,35,35]) { y = inverse(a) return y }", {{"a", zero}});
  unsetenv("RLX_CUDA_PANELS");
}

TEST_F(LinearAlgebraOnDevice, elimination_exchanges_rows) {
  for (const int64_t n : {2, 31, 180, 320}) {
    Values v(size_t(n * n), 0.0);
    for (int64_t i = 0; i < n; ++i) v[size_t(i * n + (i + n / 2 + 1) % n)] = double(1 + i % 3);
    const Literal a = Literal::reals(parse_shape(cat("f64[", n, ",", n, "]")), v);
    compare(
        cat("graph @f(a: f64[", n, ",", n, "]) { y = inverse(a) s:2 = slogdet(a) return y=y, s=s, l=s#1 }"),
        {{"a", a}}, 1e-13);
    const Literal r = sample(cat("f64[", n, ",", n, "]"), 3);
    compare(cat("graph @f(a: f64[", n, ",", n, "], b: f64[", n,
                "]) { y = dense_solve(a, b) s:2 = slogdet(a) return y=y, s=s, l=s#1 }"),
            {{"a", r}, {"b", sample(cat("f64[", n, "]"), 4)}}, 1e-8);
  }
}

TEST_F(LinearAlgebraOnDevice, matrices_without_an_answer) {
  const Literal a = test::f64({3, 2, 2}, {0, 1, 1, 0, 1, 2, 2, 4, 3, 1, 2, 4});
  compare("graph @f(a: f64[3,2,2]) { y = det(a) s:2 = slogdet(a) l = logdet(a) return y=y, s=s, a=s#1, l=l }",
          {{"a", a}}, 1e-14);
  compare("graph @f(a: f32[2,0,0]) { y = det(a) s:2 = slogdet(a) return y=y, s=s, a=s#1 }",
          {{"a", sample("f32[2,0,0]", 1)}}, 0);
  expect_error("graph @f(a: f64[3,2,2]) { y = inverse(a) return y }", {{"a", a}});
  expect_error("graph @f(a: f64[3,2,2], b: f64[3,2]) { y = batched_dense_solve(a, b) return y }",
               {{"a", a}, {"b", sample("f64[3,2]", 1)}});
  expect_error("graph @f(a: f64[3,2,2]) { y = cholesky(a) return y }", {{"a", a}});
  expect_error("graph @f(a: f64[2,2], b: f64[2]) { y = triangular_solve(a, b, lower=false) return y }",
               {{"a", test::f64({2, 2}, {1, 2, 3, 0})}, {"b", test::f64({2}, {1, 2})}});
  // In panels: column 150 is zero, and the leading 151 rows have no factor.
  Values v(size_t(250 * 250), 0.0);
  for (int64_t i = 0; i < 250; ++i) v[size_t(i * 250 + i)] = i == 150 ? 0 : double(1 + i % 3);
  const Literal large = Literal::reals(parse_shape("f64[250,250]"), v);
  expect_error("graph @f(a: f64[250,250]) { y = inverse(a) return y }", {{"a", large}});
  expect_error("graph @f(a: f64[250,250]) { y = cholesky(a) return y }", {{"a", large}});
  compare("graph @f(a: f64[250,250]) { y = det(a) s:2 = slogdet(a) return y=y, s=s, a=s#1 }", {{"a", large}},
          0);
}

TEST_P(SystemsOnDevice, cholesky) {
  const int64_t n = GetParam(), batch = batch_of(n);
  for (const char* type : {"f32", "f64", "bf16"}) {
    if (test::is_left_out(n, type)) continue;
    const std::string a = cat(type, "[", batch, ",", n, ",", n, "]");
    compare(cat("graph @f(a: ", a, ") { y = cholesky(a) return y }"), {{"a", dominant(type, batch, n, 5)}},
            loss(type, n));
  }
  if (n > 64) return;
  const std::string c = cat("c64[2,", n, ",", n, "]");
  compare(cat("graph @f(a: ", c, ") { y = cholesky(a) return y }"), {{"a", sample(c + " spd", 5)}}, 1e-3);
}

TEST(Faults, name_both_numbers_of_a_pair) {
  const uint64_t number = cuda::new_fault("solve: matrix % has no pivot in column %, row %", 10);
  EXPECT_EQ(cuda::fault_text((number << 40) + 37), "solve: matrix 3 has no pivot in column 7, row 7");
  EXPECT_EQ(cuda::fault_text((cuda::new_fault("gather: element % is wrong") << 40) + 37),
            "gather: element 37 is wrong");
  EXPECT_NE(cuda::new_fault("solve: matrix % has no pivot in column %, row %", 11), number);
}

}  // namespace
}  // namespace rlx
