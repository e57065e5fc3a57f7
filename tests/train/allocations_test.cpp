// Steady state: once a training has made its first steps, a step allocates nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "rlx/ir/sample.h"
#include "rlx/train/init.h"
#include "rlx/train/trainer.h"
#include "tests/support/graphs.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// Counts every allocation of this program; the memory itself is malloc's.
void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace rlx {
namespace {

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
      g, train::init(g, std::vector<train::InitChoice>{}, 1),
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
