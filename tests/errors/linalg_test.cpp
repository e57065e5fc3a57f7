// Calls of the linear algebra operators that must be refused, with their messages.
#include <gtest/gtest.h>

#include "rlx/ops/linalg/cholesky.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/einsum.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/solve.h"
#include "rlx/ops/linalg/svd.h"
#include "rlx/ops/linalg/triangular_solve.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::message_of;
using test::typed;

TEST(LinalgRefusal, dot_general_checks_its_axes) {
  Graph g("g");
  const Expr a = typed(g, "f32[2,3]"), b = typed(g, "f32[4,3]");
  EXPECT_EQ(message_of([&] { dot_general(a, b, {{1}, {}, {}, {}}); }),
            "dot_general: contracted axes of lhs [1] and rhs [] differ in number; they are paired in order");
  EXPECT_EQ(message_of([&] { dot_general(a, b, {{0}, {0}, {}, {}}); }),
            "dot_general: contracted sizes differ, axis 0 of lhs f32[2,3] and axis 0 of rhs f32[4,3]");
  EXPECT_EQ(message_of([&] { dot_general(a, b, {{1}, {1}, {1}, {1}}); }),
            "dot_general: axis 1 is listed twice for lhs: f32[2,3]");
}

TEST(LinalgRefusal, einsum_checks_its_equation) {
  Graph g("g");
  const Expr a = typed(g, "f32[2,3]"), b = typed(g, "f32[4,3]");
  EXPECT_EQ(message_of([&] { einsum("ij->ij", {a, b}); }),
            "einsum: equation 'ij->ij' has 1 terms for 2 operands");
  EXPECT_EQ(message_of([&] { einsum("ij,kj->im", {a, b}); }),
            "einsum: equation 'ij,kj->im': 'm' of the result is in no operand");
  EXPECT_EQ(message_of([&] { einsum("ij,ij->ij", {a, b}); }),
            "einsum: equation 'ij,ij->ij': 'i' is 2 before and 4 in rest[0]: f32[4,3]");
  EXPECT_EQ(
      message_of([&] { einsum("ijk->ij", {a}); }),
      "einsum: equation 'ijk->ij': term 'ijk' does not fit first: f32[2,3]; it takes one letter per axis");
  EXPECT_EQ(message_of([&] { einsum("i?->i", {a}); }),
            "einsum: equation 'i?->i': '?' is not a letter; axes are letters or '...'");
  EXPECT_EQ(message_of([&] { einsum("ij->ii", {a}); }),
            "einsum: equation 'ij->ii': the result has 'i' twice");
  EXPECT_EQ(message_of([&] { einsum("...j->j", {a}); }),
            "einsum: equation '...j->j': the dots of the operands are not in the result; sum over named axes "
            "instead");
  EXPECT_EQ(message_of([&] { einsum("i", {}); }), "einsum: no operands; it takes one or more");
}

TEST(LinalgRefusal, solves_want_a_square_matrix_and_a_right_side_that_fits) {
  Graph g("g");
  const Expr wide = typed(g, "f32[2,3]"), square = typed(g, "f32[3,3]"), two = typed(g, "f32[2]");
  EXPECT_EQ(message_of([&] { dense_solve(wide, two); }),
            "dense_solve: a: f32[2,3] is not square; its last two axes must have one size");
  EXPECT_EQ(
      message_of([&] { dense_solve(square, two); }),
      "dense_solve: a: f32[3,3] does not fit b: f32[2]; it takes [.., N, N] with [.., N] or [.., N, K]");
  EXPECT_EQ(message_of([&] { dense_solve(typed(g, "f32[2,3,3]"), typed(g, "f32[2,3]")); }),
            "dense_solve: a: f32[2,3,3] has rank 3; it must have rank 2");
  EXPECT_EQ(
      message_of([&] { batched_dense_solve(typed(g, "f32[2,3,3]"), typed(g, "f32[4,3]")); }),
      "batched_dense_solve: a: f32[2,3,3] does not fit b: f32[4,3]; it takes [.., N, N] with [.., N] or [.., "
      "N, K]");
  EXPECT_EQ(message_of([&] { triangular_solve(square, typed(g, "f64[3]")); }),
            "triangular_solve: dtypes differ, a: f32[3,3] and b: f64[3]; cast b to f32");
  EXPECT_EQ(message_of([&] { inverse(wide); }),
            "inverse: a: f32[2,3] is not square; its last two axes must have one size");
}

TEST(LinalgRefusal, factorisations_say_what_they_take) {
  Graph g("g");
  const Expr wide = typed(g, "f32[2,3]"), whole = typed(g, "i32[3,3]");
  EXPECT_EQ(message_of([&] { cholesky(wide); }),
            "cholesky: a: f32[2,3] is not square; its last two axes must have one size");
  EXPECT_EQ(message_of([&] { cholesky(whole); }),
            "cholesky: a: i32[3,3] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(message_of([&] { qr(whole); }),
            "qr: a: i32[3,3] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(message_of([&] { svd(typed(g, "f32[3]")); }),
            "svd: a: f32[3] has rank 1; it must have rank 2 or more");
  EXPECT_EQ(message_of([&] { svd_values(whole); }),
            "svd_values: a: i32[3,3] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(message_of([&] { eigh(wide); }),
            "eigh: a: f32[2,3] is not square; its last two axes must have one size");
  EXPECT_EQ(message_of([&] { eigh_values(whole); }),
            "eigh_values: a: i32[3,3] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(message_of([&] { det(wide); }),
            "det: a: f32[2,3] is not square; its last two axes must have one size");
  EXPECT_EQ(message_of([&] { slogdet(whole); }),
            "slogdet: a: i32[3,3] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(message_of([&] { logdet(wide); }),
            "logdet: a: f32[2,3] is not square; its last two axes must have one size");
}

TEST(LinalgRefusal, a_matrix_that_cannot_be_solved_is_named_when_it_runs) {
  const Literal singular = Literal::of<float>({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4});
  EXPECT_EQ(message_of([&] {
              test::evaluate({singular, Literal::zeros(Shape(DType::f32, {2, 2}))},
                             [](const Exprs& x) { return batched_dense_solve(x[0], x[1]); });
            }),
            "batched_dense_solve: matrix 1 of a: f32[2,2,2] is singular, column 1 has no pivot; a must be "
            "invertible");
  EXPECT_EQ(message_of([&] { test::evaluate({singular}, [](const Exprs& x) { return inverse(x[0]); }); }),
            "inverse: matrix 1 of a: f32[2,2,2] is singular, column 1 has no pivot; a must be invertible");
  EXPECT_EQ(
      message_of([&] {
        test::evaluate({Literal::of<float>({2, 2}, {1, 2, 2, 1})},
                       [](const Exprs& x) { return cholesky(x[0]); });
      }),
      "cholesky: matrix 0 of a: f32[2,2] is not positive definite, its leading 2 x 2 part has no factor");
  EXPECT_EQ(message_of([&] {
              test::evaluate({Literal::of<float>({2, 2}, {1, 0, 5, 0}), Literal::of<float>({2}, {1, 1})},
                             [](const Exprs& x) { return triangular_solve(x[0], x[1]); });
            }),
            "triangular_solve: matrix 0 of a: f32[2,2] has a zero at [1, 1]; the diagonal must not vanish");
}

}  // namespace
}  // namespace rlx::ops
