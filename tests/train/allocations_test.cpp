// Steady state: once a training has made its first steps, a step allocates nothing.
#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "rlx/train/init.h"
#include "rlx/train/trainer.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::allocations;

TEST(Allocations, are_none_for_a_training_step) {
  const ir::Graph g =
      test::graph(R"(graph @layer(x: f32[n,8,16], y: i32[m], param w: f32[16,48], param b: f32[48],
                                                 param g: f32[16], param h: f32[16], param v: f32[16,5]) {
    r = layer_norm(x, g, h)
    q = add(matmul(r, w), b)
    o:2 = attention(narrow(q, axis=2, start=0, len=16), narrow(q, axis=2, start=16, len=16),
                    narrow(q, axis=2, start=32, len=16), num_heads=2, head_dim=8, mask_kind=causal)
    logits = reshape(matmul(gelu(add(o, x)), v), shape=(n*8, 5))
    loss = reduce(softmax_cross_entropy_with_logits(logits, y), kind=mean)
    return loss
  })");
  train::Trainer t(
      g, train::init(g, {}, 1),
      {.rate = train::constant(0.01), .clip_norm = 1.0, .average = 0.9, .compile = {.threads = 2}});
  const Literal x = ir::sample_literal("f32[3,8,16]", 1), y = ir::sample_literal("i32[24] <5", 2);
  const Input batch[] = {{"x", view(x)}, {"y", view(y)}};
  for (int i = 0; i < 3; ++i) t.step(batch);
  const int64_t before = allocations.load();
  for (int i = 0; i < 5; ++i) t.step(batch);
  EXPECT_EQ(allocations.load() - before, 0);
}

}  // namespace
}  // namespace rlx
