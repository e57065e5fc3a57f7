#include <gtest/gtest.h>

#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/sort.h"
#include "rlx/ops/reduce/variance.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::refusal;

TEST(ReduceErrors, positions_of_extremes) {
  EXPECT_EQ(refusal<Argmax>({1}, {"f32[3,0]"}), "argmax: axis 1 of x: f32[3,0] is empty and has no position");
  EXPECT_EQ(refusal<Argmin>({0, false, DType::bool_}, {"f32[3]"}),
            "argmin: dtype bool does not hold positions; use an integer type, f32 or f64");
  EXPECT_EQ(refusal<Cummax>({1}, {"f32[3]"}), "cummax: axis 1 is out of range for x: f32[3]");
  EXPECT_EQ(refusal<Cummin>({0}, {"c64[3]"}),
            "cummin: x: c64[3] is complex and has no order; use its real part or modulus");
}

TEST(ReduceErrors, sorting) {
  EXPECT_EQ(refusal<Sort>({0}, {"c64[3]"}),
            "sort: x: c64[3] is complex and has no order; use its real part or modulus");
  EXPECT_EQ(refusal<Argsort>({0}, {"f8e4m3[3]"}),
            "argsort: x: f8e4m3[3] has dtype f8e4m3; cast it to f32 first");
  EXPECT_EQ(refusal<TopK>({4}, {"f32[2,3]"}),
            "top_k: k is 4 and axis 1 of x: f32[2,3] has size 3; k must be between 0 and that");
}

TEST(ReduceErrors, softmax_takes_floats) {
  EXPECT_EQ(refusal<Softmax>({0}, {"i32[3]"}),
            "softmax: x: i32[3] has dtype i32; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(refusal<LogSoftmax>({3}, {"f32[3]"}), "log_softmax: axis 3 is out of range for x: f32[3]");
  EXPECT_EQ(refusal<Logsumexp>({{0, 0}, false}, {"f32[3]"}),
            "logsumexp: axis 0 is listed twice for x: f32[3]");
}

TEST(ReduceErrors, variance) {
  EXPECT_EQ(refusal<Variance>({{}, false, -1}, {"f32[3]"}),
            "variance: correction is -1.0; it must not be negative");
  EXPECT_EQ(refusal<Variance>({}, {"i32[3]"}),
            "variance: x: i32[3] has dtype i32; it must be f16, bf16, f32 or f64");
}

TEST(ReduceErrors, conditions_are_bool) {
  EXPECT_EQ(refusal<AnyOf>({}, {"i32[3]"}),
            "any: x: i32[3] has dtype i32; it must be bool; compare it with 0");
  EXPECT_EQ(refusal<AllOf>({{1}, false}, {"bool[3]"}), "all: axis 1 is out of range for x: bool[3]");
}

TEST(ReduceErrors, cumsum_backward) {
  EXPECT_EQ(refusal<CumsumBackward>({-2}, {"f32[3]"}),
            "cumsum_backward: axis -2 is out of range for dy: f32[3]");
}

}  // namespace
}  // namespace rlx::ops
