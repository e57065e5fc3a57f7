#include <gtest/gtest.h>

#include "rlx/ops/sequence/gated_delta_net.h"
#include "rlx/ops/sequence/selective_scan.h"
#include "tests/support/errors.h"

namespace rlx::ops {
namespace {

using test::message_of;

TEST(SequenceErrors, selective_scan_wants_states_of_one_size) {
  Graph g;
  const auto in = [&](const char* type) { return Expr{&g, g.input(cat("x", g.len()), parse_shape(type))}; };
  const Expr x = in("f32[2,3,4]"), a = in("f32[4,5]"), b = in("f32[2,3,6]");
  EXPECT_EQ(message_of([&] { selective_scan(x, x, a, b, b, 5); }),
            "selective_scan: b: f32[2,3,6] must be f32[2,3,5] for x: f32[2,3,4] and state_size 5");
  EXPECT_EQ(message_of([&] { selective_scan(x, x, a, b, b, 6); }),
            "selective_scan: a: f32[4,5] must be f32[4,6] for x: f32[2,3,4] and state_size 6");
}

TEST(SequenceErrors, gated_delta_net_wants_gates_per_head_and_a_square_state) {
  Graph g;
  const auto in = [&](const char* type) { return Expr{&g, g.input(cat("x", g.len()), parse_shape(type))}; };
  const Expr q = in("f32[2,5,3,4]"), gate = in("f32[2,5,3]"), wrong = in("f32[2,5,4]"),
             state = in("f32[2,3,4,5]");
  EXPECT_EQ(message_of([&] { gated_delta_net(q, q, q, gate, wrong, 4); }),
            "gated_delta_net: beta: f32[2,5,4] must be f32[2,5,3] for q: f32[2,5,3,4] and state_size 4");
  EXPECT_EQ(
      message_of([&] { gated_delta_net_carry(q, q, q, gate, gate, state, 4); }),
      "gated_delta_net_carry: state: f32[2,3,4,5] must be f32[2,3,4,4] for q: f32[2,5,3,4] and state_size 4");
  EXPECT_EQ(message_of([&] { gated_delta_net(q, q, q, gate, gate, 8); }),
            "gated_delta_net: q: f32[2,5,3,4] must be f32[2,5,3,8] for q: f32[2,5,3,4] and state_size 8");
}

}  // namespace
}  // namespace rlx::ops
