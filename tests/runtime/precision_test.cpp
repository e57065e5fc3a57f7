// Values stored in 16 bits, as a run computes them.
#include <gtest/gtest.h>

#include "rlx/backend/plan.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::graph;

// A row that is masked whole has an even softmax in f32: -1e9 or the lowest f32 must not become an infinity on its way in.
TEST(ShortFloats, masks_that_are_inputs_stay_finite) {
  const ir::Graph g = graph(R"(graph @g(x: f32[2,2], m: f32[2,2], param far: f32[2]) {
    y = softmax(add(add(x, m), far), axis=1)
    return y
  })");
  for (const auto& policy : {PrecisionPolicy::always_f16(), PrecisionPolicy::auto_mixed_bf16()}) {
    for (const float blocked : {-1e9f, -3.4028235e38f}) {
      CompiledGraph f = compile(g, {{"far", Literal::of<float>({2}, {0, 0})}}, {.precision = policy});
      const Literal y = f.run({{"x", Literal::full(Shape(DType::f32, {2, 2}), 0.5)},
                               {"m", Literal::of<float>({2, 2}, {0, blocked, blocked, blocked})}})
                            .at("y");
      EXPECT_EQ(y, Literal::of<float>({2, 2}, {1, 0, 0.5, 0.5})) << blocked;
    }
  }
}

TEST(ShortFloats, an_input_is_narrowed_in_one_step) {
  for (const auto& policy : {PrecisionPolicy::always_f16(), PrecisionPolicy::auto_mixed_bf16()}) {
    CompiledGraph f = compile(graph("graph @g(x: f32[4,8], param w: f32[8,8]) { y = matmul(x, w) return y }"),
                              {}, {.precision = policy});
    EXPECT_EQ(f.plan().steps.size(), 3u) << f.plan().text();  // narrowed, multiplied, widened
  }
}

}  // namespace
}  // namespace rlx
