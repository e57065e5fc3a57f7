// Steady state: once a size has been run, running it again allocates nothing.
#include <gtest/gtest.h>

#include "rlx/backend/plan.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/table.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/graphs.h"
#include "tests/support/named_samples.h"
#include "tests/support/samples.h"

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

// Steps of the reference rule make literals; reports name them.
bool runs_by_rule(const backend::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const backend::Plan::Step& s) {
    return s.kernel == "reference" || std::any_of(s.bodies.begin(), s.bodies.end(), runs_by_rule);
  });
}

class EveryOperator : public testing::TestWithParam<const ir::OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Allocations, EveryOperator, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EveryOperator, allocates_nothing_once_it_has_run) {
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i);
    CompiledGraph f = compile(c.graph, {}, {.threads = 2});
    std::vector<Input> inputs;
    for (size_t k = 0; k < c.leaves.size(); ++k)
      inputs.push_back({ir::leaf_name(c.graph.node(c.graph.leaves()[k])), view(c.leaves[k])});
    if (runs_by_rule(f.plan())) continue;
    EXPECT_EQ(allocations_of_a_run(f, inputs), 0) << cat("sample ", i, "\n", c.graph, f.plan().text());
  }
}

// Kernels that are chosen by size; every operand comes with the run.
TEST(Allocations, are_none_for_large_operands) {
  for (
      const char* text :
      {"(x: f32[300,700], w: f32[700,500]) { return matmul(x, w) }",
       "(x: bf16[300,700], w: bf16[700,500]) { return matmul(x, w) }",
       "(x: f64[100,200], w: f64[200,300]) { return matmul(x, w) }",
       "(x: f32[1,2048], w: f32[2048,2048]) { return matmul(x, w) }",
       "(x: f32[8,64,48], w: f32[8,48,64]) { return matmul(x, w) }",
       "(x: f32[2,64,28,28], w: f32[64,64,3,3]) { return conv2d(x, w, padding=[1,1]) }",
       "(x: f32[1,3,112,112], w: f32[64,3,7,7]) { return conv2d(x, w, stride=[2,2], padding=[3,3]) }",
       "(x: f32[1,64,28,28], w: f32[128,64,1,1]) { return conv2d(x, w) }",
       "(x: f32[1,64,28,28], w: f32[64,1,3,3]) { return conv2d(x, w, padding=[1,1], groups=64) }",
       "(dy: f32[2,64,28,28], w: f32[64,64,3,3]) { return conv2d_backward_input(dy, w, x_shape=(2,64,28,28), "
       "padding=[1,1]) }",
       "(x: f32[2,64,28,28], dy: f32[2,64,28,28]) { return conv2d_backward_weight(x, dy, w_shape=(64,64,3,3), "
       "padding=[1,1]) }",
       "(x: u8[1,64,28,28], w: i8[64,64,3,3], b: i32[64]) { return q_conv2d(x, w, b, padding=[1,1]) }",
       "(q: f32[1,512,256], k: f32[1,512,256], v: f32[1,512,256]) { y:2 = attention(q, k, v, num_heads=4, "
       "head_dim=64, mask_kind=causal) return y }",
       "(x: f32[64,4096]) { y:2 = sort(x, axis=1) return y }",
       "(x: f32[64,4096]) { return cumsum(x, axis=0) }",
       "(x: f32[4096,64]) { return softmax(transpose(x, perm=[1,0]), axis=1) }",
       "(x: f32[512,512]) { return transpose(x, perm=[1,0]) }",
       "(x: f32[512,512]) { return reduce(x, axes=[0,1]) }",
       "(x: c64[16,4096]) { return fft(x) }",
       "(a: f32[128,128], b: f32[128,8]) { return dense_solve(a, b) }"}) {
    SCOPED_TRACE(text);
    const ir::Graph g = test::graph(cat("graph @g", text));
    CompiledGraph f = compile(g, {}, {.threads = 2});
    const NamedLiterals values = test::named_samples(g);
    std::vector<Input> inputs;
    for (const auto& [name, value] : values) inputs.push_back({name, view(value)});
    EXPECT_EQ(allocations_of_a_run(f, inputs), 0) << f.plan().text();
  }
}

}  // namespace
}  // namespace rlx
