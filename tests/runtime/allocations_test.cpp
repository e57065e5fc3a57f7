// Steady state: once a size has been run, running it again allocates nothing.
#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::allocations;

int64_t allocations_of_a_run(CompiledGraph& f, std::span<const Input> inputs) {
  for (int i = 0; i < 3; ++i) f.run(inputs);
  const int64_t before = allocations.load();
  for (int i = 0; i < 5; ++i) f.run(inputs);
  return allocations.load() - before;
}

TEST(Allocations, are_none_for_products_regions_rows_and_attention) {
  const ir::Graph g = test::graph(R"(graph @layer(x: f32[n,8,16], param w: f32[16,16], param b: f32[16]) {
    h = matmul(x, w)
    a = add(h, b)
    q = gelu(a)
    o:2 = attention(q, x, h, num_heads=2, head_dim=8)
    s = softmax(o, axis=2)
    r = layer_norm(s, b, b, axis=2, eps=0.00001)
    y = mul(r, x)
    return y
  })");
  CompiledGraph f =
      compile(g, {{"w", ir::sample_literal("f32[16,16]", 1)}, {"b", ir::sample_literal("f32[16]", 2)}},
              {.threads = 2});
  const Literal x = ir::sample_literal("f32[3,8,16]", 3);
  const Input inputs[] = {{"x", view(x)}};
  EXPECT_EQ(allocations_of_a_run(f, inputs), 0);
}

TEST(Allocations, are_none_for_values_by_position) {
  CompiledGraph f =
      compile(test::graph("graph @g(a: f32[8], b: f32[8]) { s = sub(a, b) y = exp(s) return y }"));
  const Literal a = ir::sample_literal("f32[8]", 1), b = ir::sample_literal("f32[8]", 2);
  const TensorView values[] = {view(a), view(b)};
  for (int i = 0; i < 3; ++i) f.run_slots(values);
  const int64_t before = allocations.load();
  for (int i = 0; i < 5; ++i) f.run_slots(values);
  EXPECT_EQ(allocations.load() - before, 0);
}

TEST(Allocations, are_none_for_places_of_the_caller) {
  CompiledGraph f =
      compile(test::graph("graph @g(a: f32[8], b: f32[8]) { s = sub(a, b) y = exp(s) return y, s }"));
  const Literal a = ir::sample_literal("f32[8]", 1), b = ir::sample_literal("f32[8]", 2);
  float out[16];
  const Input inputs[] = {{"a", view(a)}, {"b", view(b)}};
  const TensorView places[] = {view(out, {8}), view(out + 8, {8})};
  for (int i = 0; i < 3; ++i) f.run_into(inputs, places);
  const int64_t before = allocations.load();
  for (int i = 0; i < 5; ++i) f.run_into(inputs, places);
  EXPECT_EQ(allocations.load() - before, 0);
}

TEST(Allocations, are_none_for_a_loop) {
  const ir::Graph g = test::graph(R"(graph @loop(c: f32[4], xs: f32[10,4]) {
    r:2 = scan(c, xs, body=graph @step(c: f32[4], x: f32[4]) {
      s = add(c, x)
      n = tanh(s)
      return n, s
    }, length=10, carries=1)
    return r, r#1
  })");
  CompiledGraph f = compile(g);
  const Literal c = ir::sample_literal("f32[4]", 1), xs = ir::sample_literal("f32[10,4]", 2);
  const Input inputs[] = {{"c", view(c)}, {"xs", view(xs)}};
  EXPECT_EQ(allocations_of_a_run(f, inputs), 0);
}

}  // namespace
}  // namespace rlx
