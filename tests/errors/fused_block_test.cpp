#include <gtest/gtest.h>

#include "rlx/ops/attention/fused_block.h"
#include "tests/support/errors.h"

namespace rlx::ops {
namespace {

TEST(FusedBlockErrors, operands_that_do_not_fit) {
  Graph g;
  const auto in = [&](const char* type) { return Expr{&g, g.input(cat("x", g.len()), parse_shape(type))}; };
  const Expr x = in("f32[1,3,4]"), qkv = in("f32[4,12]"), out = in("f32[4,4]"), mask = in("f32[1,3]"),
             bias = in("f32[4]");
  EXPECT_EQ(test::message_of([&] { fused_attention_block(x, out, out, mask, {}, {}, {}, {}, 2, 2); }),
            "fused_attention_block: qkv_w: f32[4,4] must be f32[4,12] (hidden, 3 num_heads head_dim)");
  EXPECT_EQ(test::message_of([&] { fused_attention_block(x, qkv, out, mask, bias, {}, {}, {}, 2, 2); }),
            "fused_attention_block: give both of qkv_b and out_b, or none");
  EXPECT_EQ(test::message_of([&] { fused_attention_block(x, qkv, out, mask, {}, {}, bias, {}, 2, 2); }),
            "fused_attention_block: give both of cos and sin, or none");
  EXPECT_EQ(test::message_of([&] { fused_transformer_layer(x, {qkv, out}, {.num_heads = 2}); }),
            "fused_transformer_layer: 3 operands given; with has_bias true it takes 14");
}

}  // namespace
}  // namespace rlx::ops
