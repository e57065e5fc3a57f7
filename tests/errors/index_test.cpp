#include <gtest/gtest.h>

#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/index/take_along.h"
#include "tests/support/evaluate.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::message_of, test::refusal;

TEST(IndexErrors, gather) {
  EXPECT_EQ(refusal<Gather>({2}, {"f32[2,3]", "i32[4]"}),
            "gather: axis 2 is out of range for table: f32[2,3]");
  EXPECT_EQ(refusal<Gather>({0}, {"f32[2,3]", "f16[4]"}),
            "gather: indices: f16[4] has dtype f16; indices are integers");
  const auto gathered = [](const Literal& indices) {
    return message_of([&] {
      evaluate({Literal::of<float>({2}, {1, 2}), indices},
               [](const Exprs& t) { return gather(t[0], t[1], 0); });
    });
  };
  EXPECT_EQ(gathered(Literal::of<int32_t>({2}, {0, 2})),
            "gather: element 1 of indices is 2; it must be at least 0 and below 2");
  EXPECT_EQ(gathered(Literal::of<float>({1}, {0.5f})),
            "gather: element 0 of indices is 0.5; an index is a whole number");
}

TEST(IndexErrors, batched_gather) {
  EXPECT_EQ(refusal<BatchedGather>({1, 1}, {"f32[2,3]", "i32[4,1]"}),
            "batched_gather: sizes of batch axis 0 of table and indices differ, 2 and 4");
  EXPECT_EQ(refusal<BatchedGather>({0, 1}, {"f32[2,3]", "i32[2,1]"}),
            "batched_gather: batch_dims is 1 with axis 0 and indices: i32[2,1]; it must not exceed the axis "
            "nor the rank of the indices");
}

TEST(IndexErrors, gather_backward) {
  EXPECT_EQ(refusal<GatherBackward>({{4, 3}, 0}, {"f32[2,5]", "i32[2]"}),
            "gather_backward: dy: f32[2,5] must be f32[2,3] (gathered from [4, 3])");
  EXPECT_EQ(refusal<GatherBackward>({{4, 3}, 2}, {"f32[2,3]", "i32[2]"}),
            "gather_backward: axis 2 is out of range for table_shape [4, 3]");
}

TEST(IndexErrors, take_along) {
  EXPECT_EQ(refusal<TakeAlong>({1}, {"f32[2,3]", "i32[3,1]"}),
            "take_along: indices: i32[3,1] must be i32[2,1] (as x but along axis 1)");
  EXPECT_EQ(refusal<TakeAlong>({1}, {"f32[2,3]", "i32[2]"}),
            "take_along: indices: i32[2] must be i32[2,3] (as x but along axis 1)");
}

TEST(IndexErrors, scatter) {
  EXPECT_EQ(refusal<Scatter>({}, {"f32[4,3]", "i32[2]", "f32[2,5]"}),
            "scatter: updates: f32[2,5] must be f32[2,3] (whole rows of base)");
  EXPECT_EQ(refusal<Scatter>({}, {"f32[4,3]", "i32[2,1]", "f32[2,3]"}),
            "scatter: indices: i32[2,1] must be i32[2] (one index for each update)");
  EXPECT_EQ(refusal<Scatter>({}, {"f32[4]", "i32[2]", "i32[2]"}),
            "scatter: dtypes differ, base: f32[4] and updates: i32[2]; cast updates to f32");
  EXPECT_EQ(refusal<Scatter>({ScatterKind::max}, {"c64[4]", "i32[2]", "c64[2]"}),
            "scatter: base: c64[4] is complex and has no order");
  EXPECT_EQ(message_of([] {
              evaluate({Literal::of<float>({2}, {1, 2}), Literal::of<int32_t>({1}, {-1}),
                        Literal::of<float>({1}, {1})},
                       [](const Exprs& t) { return scatter(t[0], t[1], t[2], ScatterKind::add); });
            }),
            "scatter: element 0 of indices is -1; it must be at least 0 and below 2");
}

TEST(IndexErrors, scatter_add) {
  EXPECT_EQ(refusal<ScatterAdd>({6}, {"f32[8,3]", "i32[7]"}),
            "scatter_add: indices: i32[7] must be i32[8] (one index for each update)");
  EXPECT_EQ(refusal<ScatterAdd>({-1}, {"f32[8,3]", "i32[8]"}),
            "scatter_add: rows -1 is negative; give the number of rows of the result");
}

}  // namespace
}  // namespace rlx::ops
