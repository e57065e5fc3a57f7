#include <gtest/gtest.h>

#include "rlx/ops/shape/dynamic_slice.h"
#include "rlx/ops/shape/flip.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/slice.h"
#include "tests/support/evaluate.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::message_of, test::refusal;

TEST(ShapeErrors, pad) {
  EXPECT_EQ(refusal<Pad>({{1}, {}, 0}, {"f32[2,3]"}), "pad: low [1] has 1 entries for x: f32[2,3]");
  EXPECT_EQ(refusal<Pad>({{}, {0, -1}, 0}, {"f32[2,3]"}),
            "pad: high [0, -1] has a negative entry; use slice to cut");
}

TEST(ShapeErrors, flip) {
  EXPECT_EQ(refusal<Flip>({{2}}, {"f32[2,3]"}), "flip: axis 2 is out of range for x: f32[2,3]");
  EXPECT_EQ(refusal<Flip>({{0, -2}}, {"f32[2,3]"}), "flip: axis 0 is listed twice for x: f32[2,3]");
}

TEST(ShapeErrors, slice) {
  EXPECT_EQ(refusal<Slice>({{0}, {2, 3}, {}}, {"f32[2,3]"}),
            "slice: start [0] has 1 entries for x: f32[2,3]");
  EXPECT_EQ(refusal<Slice>({{0}, {5}, {}}, {"f32[4]"}),
            "slice: range 0 to 5 of axis 0 does not fit x: f32[4]");
  EXPECT_EQ(refusal<Slice>({{3}, {2}, {}}, {"f32[4]"}),
            "slice: range 3 to 2 of axis 0 does not fit x: f32[4]");
  EXPECT_EQ(refusal<Slice>({{0}, {4}, {-1}}, {"f32[4]"}),
            "slice: stride -1 of axis 0 is not positive; flip the axis to go backwards");
  EXPECT_EQ(refusal<Slice>({{-1}, {4}, {}}, {"f32[4]"}),
            "slice: start [-1] and limit [4] must not be negative");
}

TEST(ShapeErrors, dynamic_slice) {
  EXPECT_EQ(refusal<DynamicSlice>({{1, 4}}, {"f32[2,3]", "i32[2]"}),
            "dynamic_slice: sizes [1, 4] does not fit x: f32[2,3]; axis 1 has size 3");
  EXPECT_EQ(refusal<DynamicSlice>({{1, 1}}, {"f32[2,3]", "i32[3]"}),
            "dynamic_slice: starts: i32[3] has 3 entries for x: f32[2,3]");
  EXPECT_EQ(refusal<DynamicSlice>({{1, 1}}, {"f32[2,3]", "bool[2]"}),
            "dynamic_slice: starts: bool[2] has dtype bool; indices are integers");
  EXPECT_EQ(message_of([] {
              evaluate({Literal::of<float>({2}, {1, 2}), Literal::of<float>({1}, {0.5f})},
                       [](const Exprs& t) { return dynamic_slice(t[0], t[1], {1}); });
            }),
            "dynamic_slice: element 0 of starts is 0.5; an index is a whole number");
}

TEST(ShapeErrors, dynamic_update_slice) {
  EXPECT_EQ(refusal<DynamicUpdateSlice>({}, {"f32[2,3]", "f16[1,1]", "i32[2]"}),
            "dynamic_update_slice: dtypes differ, x: f32[2,3] and update: f16[1,1]; cast update to f32");
  EXPECT_EQ(refusal<DynamicUpdateSlice>({}, {"f32[2,3]", "f32[3]", "i32[2]"}),
            "dynamic_update_slice: update [3] has 1 entries for x: f32[2,3]");
}

TEST(ShapeErrors, iota) {
  EXPECT_EQ(refusal<Iota>({parse_shape("i32[3]"), 1}, {}), "iota: axis 1 is out of range for i32[3]");
  EXPECT_EQ(refusal<Iota>({parse_shape("bool[3]"), 0}, {}),
            "iota: shape bool[3] has dtype bool; it must be numeric");
}

TEST(ShapeErrors, one_hot) {
  EXPECT_EQ(refusal<OneHot>({3, 2, DType::f32}, {"i32[4]"}),
            "one_hot: axis 2 is out of range for a result of rank 2");
  EXPECT_EQ(refusal<OneHot>({3, 0, DType::f32}, {"c64[4]"}),
            "one_hot: indices: c64[4] has dtype c64; indices are integers");
}

}  // namespace
}  // namespace rlx::ops
