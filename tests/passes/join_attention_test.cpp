// Attention that is written out: the text before and after, and both run.
#include "rlx/passes/join_attention.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

struct TakesAll : ir::Target {
  std::string_view name() const override { return "all"; }
  ir::Support accepts(const ir::Node&, std::span<const Shape>, std::span<const ir::Layout>,
                      std::span<const ir::Layout>) const override {
    return ir::Support::yes();
  }
};
struct TakesNothing : ir::Target {
  std::string_view name() const override { return "nothing"; }
  ir::Support accepts(const ir::Node&, std::span<const Shape>, std::span<const ir::Layout>,
                      std::span<const ir::Layout>) const override {
    return ir::Support::no("no kernel");
  }
};

ir::Graph joined(const ir::Graph& before, size_t changes = 1) {
  ir::Rewritten after = join_attention(before, TakesAll());
  EXPECT_EQ(after.changes, changes);
  after.graph.erase_dead();
  EXPECT_TRUE(after.graph.verify().empty());
  return std::move(after.graph);
}

void expect_same_numbers(const ir::Graph& after, const ir::Graph& before) {
  const Literals leaves = test::sample_leaves(before);
  test::expect_close(ir::interpret(after, leaves), ir::interpret(before, leaves), 1e-6);
}

void expect_joined(std::string_view before_text, std::string_view after_text) {
  const ir::Graph before = graph(before_text), after = joined(before);
  EXPECT_EQ(after, graph(after_text)) << cat(after);
  expect_same_numbers(after, before);
}

size_t count(const ir::Graph& g, std::string_view op) {
  size_t out = 0;
  for (const ir::Node* n : g.nodes()) out += n->op->name == op;
  return out;
}

TEST(JoinAttention, of_heads_that_come_from_lanes_and_go_back_to_them) {
  expect_joined(
      R"(graph @g(x: f32[2,3,4,5], y: f32[2,6,4,5], z: f32[2,6,4,7], m: f32[2,1,1,6]) {
    c = full(shape=f32[], value=0.25)
    q = transpose(x, perm=[0,2,1,3])
    k = transpose(y, perm=[0,2,3,1])
    v = transpose(z, perm=[0,2,1,3])
    s = matmul(q, k)
    t = mul(s, c)
    u = add(t, m)
    p = softmax(u, axis=3)
    o = matmul(p, v)
    h = transpose(o, perm=[0,2,1,3])
    r = reshape(h, shape=(2,3,28))
    return r
  })",
      R"(graph @g(x: f32[2,3,4,5], y: f32[2,6,4,5], z: f32[2,6,4,7], m: f32[2,1,1,6]) {
    top = reduce(m, kind=max, axes=[3], keep_dim=true)
    least = full(shape=f32[], value=-inf)
    none = compare(top, least)
    nan = full(shape=f32[], value=nan)
    b = where(none, nan, m)
    a:2 = attention(x, y, z, b, num_heads=4, num_kv_heads=4, head_dim=5, has_bias=true, score_scale=0.25, layout=bshd)
    o = transpose(a, perm=[0,2,1,3])
    h = transpose(o, perm=[0,2,1,3])
    r = reshape(h, shape=(2,3,28))
    return r
  })");
}

TEST(JoinAttention, of_factors_on_both_sides_and_behind) {
  const ir::Graph before = graph(R"(graph @g(q: f64[3,4,5], y: f64[3,6,5], v: f64[3,6,2]) {
    two = full(shape=f64[], value=2)
    half = full(shape=f64[], value=0.5)
    r = mul(two, q)
    z = div(y, two)
    k = transpose(z, perm=[0,2,1])
    l = mul(k, half)
    s = matmul(r, l)
    t = div(s, two)
    p = softmax(t)
    o = matmul(p, v)
    return o
  })");
  const ir::Graph after = joined(before);
  EXPECT_EQ(after, graph(R"(graph @g(q: f64[3,4,5], y: f64[3,6,5], v: f64[3,6,2]) {
    a = reshape(q, shape=(3,1,4,5))
    b = reshape(y, shape=(3,1,6,5))
    c = reshape(v, shape=(3,1,6,2))
    d:2 = attention(a, b, c, num_heads=1, num_kv_heads=1, head_dim=5, score_scale=0.25, layout=bhsd)
    o = reshape(d, shape=(3,4,2))
    return o
  })"))
      << cat(after);
  expect_same_numbers(after, before);
}

TEST(JoinAttention, of_a_soft_cap) {
  expect_joined(R"(graph @g(q: f32[2,1,4,5], k: f32[2,1,5,6], v: f32[2,1,6,5]) {
    scale = full(shape=f32[], value=0.5)
    cap = full(shape=f32[], value=4)
    s = matmul(q, k)
    t = mul(s, scale)
    u = div(t, cap)
    w = tanh(u)
    c = mul(w, cap)
    p = softmax(c)
    o = matmul(p, v)
    return o
  })",
                R"(graph @g(q: f32[2,1,4,5], k: f32[2,1,5,6], v: f32[2,1,6,5]) {
    turned = transpose(k, perm=[0,1,3,2])
    o:2 = attention(q, turned, v, num_heads=1, num_kv_heads=1, head_dim=5, score_scale=0.5, attn_logit_softcap=4, layout=bhsd)
    return o=o
  })");
}

// Scores of all heads in one batch axis, unfolded where the bias is added: as many exporters write them.
TEST(JoinAttention, of_batches_that_are_unfolded_for_the_bias) {
  const ir::Graph before = graph(R"(graph @g(q: f32[6,4,5], k: f32[6,5,7], v: f32[6,7,5], m: f32[2,1,4,7]) {
    s = matmul(q, k)
    t = reshape(s, shape=(2,3,4,7))
    u = add(m, t)
    w = reshape(u, shape=(6,4,7))
    p = softmax(w)
    o = matmul(p, v)
    return o
  })");
  const ir::Graph after = joined(before);
  EXPECT_EQ(count(after, "attention"), 1u) << cat(after);
  expect_same_numbers(after, before);
}

// Windows of pictures have a batch of batches.
TEST(JoinAttention, of_five_axes) {
  const ir::Graph before =
      graph(R"(graph @g(q: f32[2,3,2,4,5], k: f32[2,3,2,5,4], v: f32[2,3,2,4,5], b: f32[2,4,4]) {
    s = matmul(q, k)
    t = add(s, b)
    p = softmax(t)
    o = matmul(p, v)
    return o
  })");
  const ir::Graph after = joined(before);
  EXPECT_EQ(count(after, "attention"), 1u) << cat(after);
  expect_same_numbers(after, before);
}

TEST(JoinAttention, in_the_body_of_a_loop) {
  const ir::Graph before = graph(R"(graph @g(x: f32[4,4], k: f32[4,5], v: f32[5,4]) {
    y = scan(x, k, v, length=3, carries=1, consts=2, body=graph(c: f32[4,4], k: f32[4,5], v: f32[5,4]) {
      s = matmul(c, k)
      p = softmax(s)
      o = matmul(p, v)
      return o
    })
    return y
  })");
  const ir::Graph after = joined(before);
  EXPECT_NE(cat(after).find("attention("), std::string::npos) << cat(after);
  expect_same_numbers(after, before);
}

// -inf in `hidden` places, 0 elsewhere; `rows` and `keys` of them.
ir::Graph with_bias(const std::string& bias) {
  return graph(cat("graph @g(q: f32[1,2,2,3], k: f32[1,2,3,2], v: f32[1,2,2,3]) { b = ", bias,
                   " s = matmul(q, k) t = add(s, b) p = softmax(t) o = matmul(p, v) return o }"));
}

TEST(JoinAttention, rows_without_a_key_stay_nan) {
  // The second row has no key.
  const ir::Graph before = with_bias("constant(value=f32[2,2]{0, -inf, -inf, -inf})");
  const ir::Graph after = joined(before);
  EXPECT_EQ(count(after, "where"), 1u) << cat(after);
  expect_same_numbers(after, before);
}

TEST(JoinAttention, known_biases_with_a_key_in_each_row_are_left_alone) {
  for (const char* bias : {"constant(value=f32[2,2]{0, -inf, 1, 2})", "constant(value=f32[2]{-1e4, 3})"}) {
    const ir::Graph before = with_bias(bias), after = joined(before);
    EXPECT_EQ(count(after, "where"), 0u) << cat(after);
    expect_same_numbers(after, before);
  }
}

// Each addend leaves a key in each row, both together none in the first.
TEST(JoinAttention, several_biases_may_block_a_row_together) {
  const ir::Graph before = graph(R"(graph @g(q: f32[2,3], k: f32[3,2], v: f32[2,3]) {
    a = constant(value=f32[2,2]{0, -inf, 0, -inf})
    b = constant(value=f32[2,2]{-inf, 0, 0, 0})
    s = matmul(q, k)
    t = add(s, a)
    u = add(b, t)
    p = softmax(u)
    o = matmul(p, v)
    return o
  })");
  expect_same_numbers(joined(before), before);
}

ir::Graph with_choice(const std::string& blocked, const std::string& operands) {
  return graph(cat(
      "graph @g(q: f32[1,2,2,3], k: f32[1,2,3,4], v: f32[1,2,4,3], c: bool[1,1,2,4]) { n = constant(value=f32[]{",
      blocked, "}) s = matmul(q, k) t = where(", operands, ") p = softmax(t) o = matmul(p, v) return o }"));
}

TEST(JoinAttention, of_scores_that_are_replaced) {
  for (const char* blocked : {"-inf", "-3.4028234663852886e+38"}) {
    for (const char* operands : {"c, s, n", "c, n, s"}) {
      const ir::Graph before = with_choice(blocked, operands), after = joined(before);
      EXPECT_EQ(count(after, "attention"), 1u) << cat(after);
      // One row of the condition is all of one kind.
      Literals leaves = test::sample_leaves(before);
      leaves[3] = Literal::of<bool>({1, 1, 2, 4}, {true, false, true, true, false, false, false, false});
      test::expect_close(ir::interpret(after, leaves), ir::interpret(before, leaves), 1e-6);
      leaves[3] = Literal::of<bool>({1, 1, 2, 4}, {true, false, true, true, true, true, true, true});
      test::expect_close(ir::interpret(after, leaves), ir::interpret(before, leaves), 1e-6);
    }
  }
}

TEST(JoinAttention, says_what_became_of_a_softmax) {
  const auto told = [](const ir::Graph& g, const ir::Target& target) {
    std::vector<Remark> remarks;
    const ir::Rewritten after = join_attention(g, target, &remarks);
    EXPECT_EQ(remarks.size(), 1u);
    EXPECT_EQ(after.changes, size_t(remarks.at(0).applied));
    if (!remarks.at(0).applied) {
      EXPECT_EQ(after.graph, g);
    }
    return remarks.at(0).text;
  };
  const auto between = [&](const std::string& text) {
    return told(graph(cat("graph @g(q: f32[2,3], k: f32[3,2], v: f32[2,3], w: f32[2,1]) { s = matmul(q, k) ",
                          text, " }")),
                TakesAll());
  };
  EXPECT_EQ(between("p = softmax(s) o = matmul(p, v) return o"),
            "with the products on both sides: attention");
  EXPECT_EQ(between("p = softmax(s) o = matmul(p, v) return o, p"),
            "not attention: somebody else reads the softmax");
  EXPECT_EQ(between("p = softmax(s) o = matmul(p, v) return o, s"),
            "not attention: somebody else reads the scores");
  EXPECT_EQ(between("p = softmax(s, axis=0) o = matmul(p, v) return o"),
            "not attention: softmax is not over the last axis");
  EXPECT_EQ(between("t = exp(s) p = softmax(t) o = matmul(p, v) return o"),
            "not attention: exp between a product and its softmax");
  EXPECT_EQ(between("t = add(s, w) p = softmax(t) o = matmul(p, v) return o"),
            "not attention: a bias of f32[2,1] for scores of f32[1,1,2,2]");
  EXPECT_EQ(told(with_choice("-10000", "c, s, n"), TakesAll()),
            "not attention: blocked scores are -10000.0, which is seen where all are blocked");
  EXPECT_EQ(
      told(
          graph(
              "graph @g(q: bf16[2,3], k: bf16[3,2], v: bf16[2,3]) { s = matmul(q, k) p = softmax(s) o = matmul(p, v) "
              "return o }"),
          TakesAll()),
      "not attention: what lies between is rounded to bf16");
  EXPECT_EQ(told(with_bias("constant(value=f32[2]{1, 2})"), TakesNothing()), "not attention: no kernel");
}

}  // namespace
}  // namespace rlx::passes
