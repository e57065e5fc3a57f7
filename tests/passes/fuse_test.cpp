// Joining nodes, for a target that takes every region.
#include "rlx/passes/fuse.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

class TakesAll : public ir::Target {
 public:
  std::string_view name() const override { return "all"; }
  ir::Support accepts(const ir::Node&, std::span<const Shape>, std::span<const ir::Layout>,
                      std::span<const ir::Layout>) const override {
    return ir::Support::yes();
  }
};

TEST(Fuse, nodes_that_nobody_needs_are_no_region) {
  // The body of the loop makes `d`, which it does not return.
  const ir::Graph g = test::graph(R"(graph @g(x: f32[4]) {
    y = scan(x, length=3, carries=1, body=graph(c: f32[4]) {
      a = exp(c)
      b = mul(a, c)
      u = sin(c)
      v = add(u, c)
      d = mul(v, u)
      return b
    })
    return y
  })");
  const Literals x{Literal::of<float>({4}, {0.1f, 0.2f, -0.3f, 0.4f})};
  const Fused fused = fuse(g, TakesAll());
  EXPECT_EQ(fused.pieces, 1u);
  test::expect_close(ir::interpret(fused.graph, x), ir::interpret(g, x), 1e-6);
}

}  // namespace
}  // namespace rlx::passes
