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

class TakesNothing : public ir::Target {
 public:
  std::string_view name() const override { return "nothing"; }
  ir::Support accepts(const ir::Node&, std::span<const Shape>, std::span<const ir::Layout>,
                      std::span<const ir::Layout>) const override {
    return ir::Support::no("no kernel");
  }
};

// The text before and after, and both run.
void expect_fused(std::string_view before_text, std::string_view after_text) {
  const ir::Graph before = test::graph(before_text);
  const ir::Graph after = fuse(before, TakesAll()).graph;
  EXPECT_TRUE(after.verify().empty());
  EXPECT_EQ(after, test::graph(after_text)) << cat(after);
  const Literals leaves = test::sample_leaves(before);
  test::expect_close(ir::interpret(after, leaves), ir::interpret(before, leaves), 0);
}

constexpr std::string_view kSumAndNorm =
    R"(graph @g(x: f32[3,4], r: f32[3,4], param g: f32[4], param w: f32[4,4]) {
    s = add(x, r)
    y = rms_norm(s, g)
    h = matmul(y, w)
    e = sin(h)
    f = mul(e, s)
    return f
  })";

TEST(Fuse, a_norm_takes_the_sum_in_front_of_it_which_others_read_too) {
  expect_fused(kSumAndNorm,
               R"(graph @g(x: f32[3,4], r: f32[3,4], param g: f32[4], param w: f32[4,4]) {
    y:2 = fused(x, r, g, body=graph @fused(x0: f32[3,4], x1: f32[3,4], x2: f32[4]) {
      s = add(x0, x1)
      y = rms_norm(s, x2)
      return s, y
    })
    f = fused(y#1, w, y, body=graph @fused(x0: f32[3,4], x1: f32[4,4], x2: f32[3,4]) {
      h = matmul(x0, x1)
      e = sin(h)
      f = mul(e, x2)
      return f
    })
    return f
  })");
}

TEST(Fuse, a_sum_that_nobody_else_reads_is_no_result) {
  expect_fused(R"(graph @g(x: f32[3,4], r: f32[3,4], w: f32[4,2]) {
    s = add(x, r)
    y = layer_norm(s)
    t = matmul(y, w)
    return t
  })",
               R"(graph @g(x: f32[3,4], r: f32[3,4], w: f32[4,2]) {
    y = fused(x, r, body=graph @fused(x0: f32[3,4], x1: f32[3,4]) {
      s = add(x0, x1)
      y = layer_norm(s)
      return y
    })
    t = matmul(y, w)
    return t
  })");
}

// Free as the end of a product, which costs less than any pass of its own.
TEST(Fuse, a_sum_stays_with_its_product) {
  expect_fused(R"(graph @g(x: f32[3,4], r: f32[3,4], param g: f32[4], param w: f32[4,4]) {
    p = matmul(r, w)
    s = add(x, p)
    y = layer_norm(s, g)
    return y, s
  })",
               R"(graph @g(x: f32[3,4], r: f32[3,4], param g: f32[4], param w: f32[4,4]) {
    s = fused(r, w, x, body=graph @fused(x0: f32[3,4], x1: f32[4,4], x2: f32[3,4]) {
      p = matmul(x0, x1)
      s = add(x2, p)
      return s
    })
    y = layer_norm(s, g)
    return y, s
  })");
}

std::string remarks_of(std::string_view text, const ir::Target& target) {
  std::string out;
  for (const Remark& r : fuse(test::graph(text), target).remarks)
    if (r.node == "y") out += cat(r.applied ? "joined " : "", r.text, "\n");
  return out;
}

TEST(Fuse, says_of_a_norm_what_became_of_the_sum_in_front_of_it) {
  EXPECT_EQ(remarks_of(kSumAndNorm, TakesAll()), "joined 2 operators joined\n");
  EXPECT_EQ(remarks_of(kSumAndNorm, TakesNothing()), "2 operators not joined: no kernel\n");
  EXPECT_EQ(remarks_of(R"(graph @g(x: f32[3,4], r: f32[3,4], param w: f32[4,4]) {
    s = add(x, matmul(r, w))
    y = layer_norm(s)
    return y, s
  })",
                       TakesAll()),
            "not joined with s: the sum is joined with 1 other operator\n");
  EXPECT_EQ(remarks_of(R"(graph @g(x: f32[3,4], r: f32[3,4], param w: f32[4,4]) {
    s = add(x, r)
    h = matmul(s, w)
    y = layer_norm(s)
    return y, s, h
  })",
                       TakesAll()),
            "not joined with s: h needs the sum before\n");
}

}  // namespace
}  // namespace rlx::passes
