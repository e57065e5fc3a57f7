// The work that plans and reports tell.
#include "rlx/backend/work.h"

#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/passes/fuse.h"
#include "tests/support/graphs.h"

namespace rlx::backend {
namespace {

using test::graph;

double total(const ir::Graph& g) {
  double out = 0;
  const auto program = Builder(cpu::device(), 1).build(g);
  for (const Plan::Step& s : program->plan().steps) out += s.cost.operations;
  return out;
}

TEST(Work, of_a_convolution_is_its_window_at_every_place) {
  // The first layer of ResNet: 64 x 112 x 112 results of 3 x 7 x 7 multiply-adds.
  const ir::Graph g = graph(R"(graph @g(x: f32[1,3,224,224], w: f32[64,3,7,7]) {
    return conv2d(x, w, stride=[2,2], padding=[3,3])
  })");
  EXPECT_EQ(operations_of(g), 2.0 * 64 * 112 * 112 * 3 * 7 * 7);
  const ir::Graph grouped = graph(R"(graph @g(x: f32[2,8,10,10], w: f32[12,4,3,3]) {
    return conv2d(x, w, groups=2)
  })");
  EXPECT_EQ(operations_of(grouped), 2.0 * 2 * 12 * 8 * 8 * 4 * 9);
  const ir::Graph transposed = graph(R"(graph @g(x: f32[2,8,10], w: f32[8,5,4]) {
    return conv_transpose1d(x, w, stride=[2])
  })");
  EXPECT_EQ(operations_of(transposed), 2.0 * 2 * 8 * 10 * 5 * 4);
}

TEST(Work, of_fused_products_is_that_of_their_operators) {
  const ir::Graph g = graph(R"(graph @g(x: f32[32,64], w: f32[64,16], b: f32[16]) {
    return relu(add(matmul(x, w), b))
  })");
  const double operators = 2.0 * 32 * 64 * 16 + 2.0 * 32 * 16;
  EXPECT_EQ(operations_of(g), operators);
  const ir::Graph fused = passes::fuse(g, cpu::device()).graph;
  ASSERT_EQ(Builder(cpu::device(), 1).build(fused)->plan().steps.size(), 1u);
  EXPECT_EQ(total(fused), operators);
}

TEST(Work, of_loops_is_that_of_their_steps_and_of_branches_the_dearest) {
  EXPECT_EQ(total(graph(R"(graph @g(h: f32[4,8], u: f32[8,8]) {
    r = scan(h, u, body=graph @step(h: f32[4,8], u: f32[8,8]) { return tanh(matmul(h, u)) },
             length=5, carries=1, consts=1)
    return r
  })")),
            5 * (2.0 * 4 * 8 * 8 + 4 * 8));
  EXPECT_EQ(total(graph(R"(graph @g(p: bool[], x: f32[8,8]) {
    r = if(p, x, then_body=graph @yes(x: f32[8,8]) { return matmul(x, x) },
           else_body=graph @no(x: f32[8,8]) { return neg(x) })
    return r
  })")),
            2.0 * 8 * 8 * 8);
}

}  // namespace
}  // namespace rlx::backend
