#include <gtest/gtest.h>

#include "rlx/ops/attention/rope.h"
#include "tests/support/errors.h"

namespace rlx::ops {
namespace {

std::string refusal(const std::vector<std::string>& types, RopeAttrs a) {
  return test::message_of([&] {
    Graph g;
    Values in;
    for (const auto& t : types) in.push_back(g.input(cat("x", in.size()), parse_shape(t)));
    make<Rope>(g, a, in);
  });
}

TEST(RopeErrors, heads_and_tables_that_do_not_fit) {
  EXPECT_EQ(refusal({"f32[2,3,6]", "f32[3,2]", "f32[3,2]"}, {.head_dim = 4}),
            "rope: x: f32[2,3,6] does not divide into heads of head_dim 4");
  EXPECT_EQ(refusal({"f32[2,3,8]", "f32[3,4]", "f32[3,4]"}, {.head_dim = 4}),
            "rope: cos: f32[3,4] has rows of 4; they must be head_dim/2 = 2");
  EXPECT_EQ(refusal({"f32[2,3,8]", "f32[3,3]", "f32[3,3]"}, {.head_dim = 8, .n_rot = 4}),
            "rope: cos: f32[3,3] has rows of 3; they must be head_dim/2 = 4 or n_rot/2 = 2");
  EXPECT_EQ(refusal({"f32[2,3,8]", "f32[2,2]", "f32[2,2]"}, {.head_dim = 4}),
            "rope: cos: f32[2,2] has 2 rows for 3 positions of x: f32[2,3,8]");
  EXPECT_EQ(refusal({"f32[2,3,8]", "f32[3,2]", "f32[3,2]"}, {.head_dim = 4, .n_rot = 3}),
            "rope: n_rot is 3; it must be even and at most head_dim 4");
  EXPECT_EQ(refusal({"f32[2,3,2,4]", "f32[3,2]", "f32[3,2]"}, {.head_dim = 4}),
            "rope: x: f32[2,3,2,4] has rank 4; layout bshd_packed is [batch, seq, heads * head_dim] or [seq, "
            "heads * head_dim]; give layout bshd or bhsd for four axes");
  EXPECT_EQ(refusal({"f32[2,3,8]", "f32[3,2]", "f32[3,2]", "i32[2]"}, {.head_dim = 4}),
            "rope: positions: i32[2] must be [3] or [2, 3] (batch, seq)");
}

TEST(RopeErrors, backward_and_axial) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f32[1,4,8]"))}, table{&g, g.input("t", parse_shape("f32[4,2]"))};
  EXPECT_EQ(test::message_of([&] { rope_backward(x, table, table, 8, 8); }),
            "rope_backward: cos: f32[4,2] has rows of 2; they must be head_dim/2 = 4");
  EXPECT_EQ(test::message_of([&] { axial_rope2d(x, 2, 2, 6, 1, 100); }),
            "axial_rope2d: head_dim is 6; it must be a multiple of 4");
  EXPECT_EQ(test::message_of([&] { axial_rope2d(x, 3, 2, 8, 1, 100); }),
            "axial_rope2d: x: f32[1,4,8] must be [batch, 6, 8] (end_x * end_y * repeat_factor tokens of "
            "num_heads * head_dim)");
}

}  // namespace
}  // namespace rlx::ops
