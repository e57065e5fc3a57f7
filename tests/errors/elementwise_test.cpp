#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/logical.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::refusal;

TEST(ElementwiseErrors, clamp) {
  EXPECT_EQ(refusal<Clamp>({2, 1}, {"f32[3]"}), "clamp: lo is 2.0 and hi is 1.0; lo must not exceed hi");
  EXPECT_EQ(refusal<Clamp>({NAN, 1}, {"f32[3]"}), "clamp: lo is nan and hi is 1.0; lo must not exceed hi");
  EXPECT_EQ(refusal<Clamp>({0.5, 1}, {"i32[3]"}),
            "clamp: bound 0.5 is not a whole number and x: i32[3] is of integers");
  EXPECT_EQ(refusal<Clamp>({}, {"c64[3]"}),
            "clamp: x: c64[3] is complex and has no order; clamp its parts or its modulus");
}

TEST(ElementwiseErrors, rem) {
  EXPECT_EQ(refusal<Rem>({}, {"f32[2]", "i32[2]"}),
            "rem: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refusal<Rem>({}, {"bool[2]", "bool[2]"}),
            "rem: operands have dtype bool; it takes floats, integers");
}

TEST(ElementwiseErrors, logic_takes_bool) {
  EXPECT_EQ(refusal<LogicalAnd>({}, {"bool[2]", "i32[2]"}),
            "logical_and: b: i32[2] has dtype i32; it must be bool; compare it with 0");
  EXPECT_EQ(refusal<LogicalOr>({}, {"f32[2]", "bool[2]"}),
            "logical_or: a: f32[2] has dtype f32; it must be bool; compare it with 0");
  EXPECT_EQ(refusal<LogicalXor>({}, {"bool[2]", "bool[3]"}),
            "logical_xor: bool[2] and bool[3] do not broadcast; axis -1 has sizes 2 and 3; they must be "
            "equal or one of them 1");
  EXPECT_EQ(refusal<LogicalNot>({}, {"u8[2]"}),
            "logical_not: x: u8[2] has dtype u8; it must be bool; compare it with 0");
}

TEST(ElementwiseErrors, bits_take_integers) {
  EXPECT_EQ(refusal<BitwiseAnd>({}, {"f32[2]", "f32[2]"}),
            "bitwise_and: operands have dtype f32; it takes booleans, integers");
  EXPECT_EQ(refusal<BitwiseOr>({}, {"i32[2]", "i64[2]"}),
            "bitwise_or: dtypes differ, a: i32[2] and b: i64[2]; cast b to i32");
  EXPECT_EQ(refusal<BitwiseXor>({}, {"c64[2]", "c64[2]"}),
            "bitwise_xor: operands have dtype c64; it takes booleans, integers");
  EXPECT_EQ(refusal<BitwiseNot>({}, {"f32[2]"}),
            "bitwise_not: x: f32[2] has dtype f32; it takes integers and booleans");
  EXPECT_EQ(refusal<ShiftLeft>({}, {"bool[2]", "bool[2]"}),
            "shift_left: operands have dtype bool; it takes integers");
  EXPECT_EQ(refusal<ShiftRight>({}, {"f32[2]", "f32[2]"}),
            "shift_right: operands have dtype f32; it takes integers");
}

TEST(ElementwiseErrors, classification_takes_floats) {
  EXPECT_EQ(refusal<IsNan>({}, {"i32[2]"}),
            "is_nan: x: i32[2] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(refusal<IsFinite>({}, {"bool[2]"}),
            "is_finite: x: bool[2] has dtype bool; it must be f16, bf16, f32, f64 or c64");
}

}  // namespace
}  // namespace rlx::ops
