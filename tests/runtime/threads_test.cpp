// One compiled program run by eight threads at once: packed weights, fused regions, attention, a loop and a branch, at sizes that
// each thread meets in another order. What a thread gets has the bits of a run alone.
#include <gtest/gtest.h>

#include <thread>

#include "rlx/ir/sample.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

constexpr int64_t kSizes = 4, kThreads = 8, kRounds = 6;

ir::Graph network() {
  return test::graph(
      R"(graph @network(x: f32[n,8,32], param w: f32[32,32], param u: f32[32,32], param b: f32[32]) {
    h = matmul(x, w)
    a = add(h, b)
    q = gelu(a)
    o:2 = attention(q, x, h, num_heads=4, head_dim=8)
    s = softmax(o, axis=2)
    r = layer_norm(s, b, b, axis=2, eps=0.00001)
    t = transpose(r, perm=[1,0,2])
    first = reduce(t, axes=[0])
    c:2 = scan(first, u, t, body=graph @cell(c: f32[n,32], u: f32[32,32], x: f32[n,32]) {
      p = matmul(c, u)
      m = add(p, x)
      e = tanh(m)
      return e, m
    }, length=8, carries=1, consts=1)
    all = reduce(c)
    zero = constant(value=f32[]{0.0})
    up = compare(all, zero, kind=gt)
    y = if(up, c, then_body=graph @up(c: f32[n,32]) { v = exp(c) return v }, else_body=graph @down(c: f32[n,32]) { v = neg(c) return v })
    return y, c#1
  })");
}

CompiledGraph compiled() {
  return compile(network(),
                 {{"w", ir::sample_literal("f32[32,32]", 1)},
                  {"u", ir::sample_literal("f32[32,32]", 2)},
                  {"b", ir::sample_literal("f32[32]", 3)}},
                 {.threads = 2});
}

NamedLiterals input(int64_t size) {
  return {{"x", ir::sample_literal(cat("f32[", size + 1, ",8,32]"), uint64_t(size + 4))}};
}

TEST(OneProgram, gives_eight_threads_the_bits_of_a_run_alone) {
  std::vector<NamedLiterals> alone;
  for (int64_t size = 0; size < kSizes; ++size) alone.push_back(compiled().run(input(size)));
  const CompiledGraph shared = compiled();  // its weights are packed by whoever runs first
  std::vector<int64_t> different(kThreads, 0);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      CompiledGraph mine = shared.clone();
      for (int64_t round = 0; round < kRounds; ++round) {
        const int64_t size = (t * 3 + round) % kSizes;
        different[size_t(t)] += mine.run(input(size)) != alone[size_t(size)];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(different, std::vector<int64_t>(kThreads, 0));
}

}  // namespace
}  // namespace rlx
