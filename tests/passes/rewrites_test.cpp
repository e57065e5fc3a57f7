// Passes over single nodes: the text before and after, and both run.
#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/passes/algebra.h"
#include "rlx/passes/cse.h"
#include "rlx/passes/fold.h"
#include "rlx/passes/prologue.h"
#include "tests/passes/expect_rewrite.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

TEST(Cse, merges_equal_nodes_and_keeps_different_ones) {
  const auto before = R"(graph @g(x: f32[4]) {
    a = exp(x)
    b = exp(x)
    c = sin(x)
    d = add(a, b)
    y = mul(d, c)
    return y
  })";
  expect_rewrite(cse(graph(before)).graph, before, R"(graph @g(x: f32[4]) {
    a = exp(x)
    c = sin(x)
    d = add(a, a)
    y = mul(d, c)
    return y
  })");
}

TEST(Cse, tells_attributes_apart) {
  const ir::Graph g = graph(R"(graph @g(x: f32[4,4]) {
    a = softmax(x, axis=0)
    b = softmax(x, axis=1)
    y = add(a, b)
    return y
  })");
  EXPECT_EQ(cse(g).changes, 0u);
}

TEST(FoldConstants, computes_in_the_types_of_the_graph) {
  const auto before = R"(graph @g(x: i32[2]) {
    a = constant(value=i32[2]{2147483647, 1})
    b = constant(value=i32[2]{1, 1})
    c = add(a, b)
    y = add(x, c)
    return y
  })";
  expect_rewrite(fold_constants(graph(before)).graph, before, R"(graph @g(x: i32[2]) {
    c = constant(value=i32[2]{-2147483648, 2})
    y = add(x, c)
    return y
  })");
}

TEST(FoldConstants, looks_into_bodies_and_leaves_the_rest_alone) {
  EXPECT_GT(fold_constants(graph(R"(graph @g(x: f32[3]) {
    c = full(shape=f32[3], value=2.0)
    d = sin(c)
    y = mul(x, d)
    return y
  })"))
                .changes,
            0u);
  EXPECT_GT(fold_constants(graph(R"(graph @g(x: f32[3]) {
    y = custom_fn(x, fwd_body=graph @f(a: f32[3]) {
      c = constant(value=f32[3]{1.0, 2.0, 3.0})
      d = neg(c)
      e = add(a, d)
      return e
    })
    return y
  })"))
                .changes,
            0u);
  const ir::Graph plain = graph(R"(graph @g(x: f32[3]) {
    c = constant(value=f32[3]{1.0, 2.0, 3.0})
    y = mul(x, c)
    z = full(shape=f32[1000000], value=1.0)
    w = neg(z)
    return y, w
  })");
  EXPECT_EQ(fold_constants(plain).changes, 0u);
}

TEST(FoldConstants, leaves_errors_and_large_results_to_the_run) {
  const ir::Graph wrong = graph(R"(graph @g() {
    t = constant(value=f32[2]{1.0, 2.0})
    i = constant(value=i32[1]{7})
    y = gather(t, i, axis=0)
    return y
  })");
  EXPECT_EQ(fold_constants(wrong).changes, 0u);
  const ir::Graph large = graph(R"(graph @g() {
    c = constant(value=f32[1]{1.0})
    y = expand(c, shape=(1000000))
    return y
  })");
  EXPECT_EQ(fold_constants(large).changes, 0u);
}

TEST(Simplify, applies_rules_inside_out) {
  const auto before = R"(graph @g(x: f32[3]) {
    one = full(shape=f32[3], value=1.0)
    a = neg(x)
    b = neg(a)
    y = mul(one, b)
    return y
  })";
  expect_rewrite(simplify(graph(before)).graph, before, "graph @g(x: f32[3]) { return y=x }");
}

TEST(Simplify, keeps_what_would_change_the_type) {
  const ir::Graph g = graph(R"(graph @g(x: f32[3]) {
    one = full(shape=f32[2,3], value=1.0)
    y = mul(x, one)
    return y
  })");
  EXPECT_EQ(simplify(g).changes, 0u);
}

TEST(Simplify, descends_into_bodies) {
  const ir::Graph g = graph(R"(graph @g(x: f32[3]) {
    y = custom_fn(x, fwd_body=graph @f(a: f32[3]) {
      b = neg(a)
      c = neg(b)
      return c
    })
    return y
  })");
  EXPECT_EQ(simplify(g).changes, 1u);
}

class EveryRule : public testing::TestWithParam<Rule> {};
INSTANTIATE_TEST_SUITE_P(Simplify, EveryRule,
                         testing::ValuesIn(algebraic_rules().begin(), algebraic_rules().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(EveryRule, gives_the_same_bits_for_every_pair_of_special_values) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> special = {0.0, -0.0, 1, -1, 0.5, -2.5, 1e-310, 3e300, -3e300, inf, -inf, nan};
  std::vector<double> x, y, c;
  for (const double a : special) {
    for (const double b : special) x.push_back(a), y.push_back(b), c.push_back(double(x.size() % 2));
  }
  const auto n = int64_t(x.size());
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const Shape type(dtype, {n});
    const ir::Graph from = side_of(GetParam(), true, type), to = side_of(GetParam(), false, type);
    ir::NamedLiterals leaves;
    for (const ir::NodeId id : from.leaves()) {
      const std::string& name = from.node(id).name;
      leaves.emplace(name, Literal::reals(from.node(id).shapes[0], name == "c" ? c : name == "y" ? y : x));
    }
    const Literal want = ir::interpret(from, leaves).begin()->second,
                  got = ir::interpret(to, leaves).begin()->second;
    for (int64_t i = 0; i < n; ++i) {
      const double w = want.real_at(i), g = got.real_at(i);
      const bool same = (std::isnan(w) && std::isnan(g)) || (w == g && std::signbit(w) == std::signbit(g));
      EXPECT_TRUE(same) << GetParam().name << " at " << x[size_t(i)] << ", " << y[size_t(i)] << ": " << w
                        << " and " << g;
    }
  }
}

// What may be replaced depends on the numbers: unsigned ones have no sign to leave out, and the least integer is its own
// negative.
TEST_P(EveryRule, leaves_results_alone_in_every_type) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> special = {0.0, -0.0, 1, -1, 2, -2, 7, 0.5, 1e30, -1e30, inf, -inf, nan};
  std::vector<double> x, y, c;
  for (const double a : special) {
    for (const double b : special) x.push_back(a), y.push_back(b), c.push_back(double(x.size() % 2));
  }
  const Dims dims{int64_t(x.size())};
  int types = 0, fired = 0;
  for (int t = 0; t < kDTypeCount; ++t) {
    const Shape type(DType(t), dims);
    SCOPED_TRACE(cat(type));
    ir::Graph g;
    try {
      g = side_of(GetParam(), true, type);
    } catch (const Error&) {
      continue;  // no type of these operators
    }
    ir::NamedLiterals leaves;
    for (const ir::NodeId id : g.leaves()) {
      const ir::Node& n = g.node(id);
      const auto& from = n.name == "c" ? c : n.name == "y" ? y : x;
      leaves.emplace(n.name, Literal::reals(Shape(DType::f64, dims), from).cast(n.shapes[0].dtype()));
    }
    const ir::Rewritten after = simplify(g);
    ++types, fired += after.changes > 0;
    const Literal want = ir::interpret(g, leaves).begin()->second,
                  got = ir::interpret(after.graph, leaves).begin()->second;
    for (int64_t i = 0; i < want.elements(); ++i)
      EXPECT_EQ(cat(got.complex_at(i).real(), " ", got.complex_at(i).imag()),
                cat(want.complex_at(i).real(), " ", want.complex_at(i).imag()))
          << "at " << x[size_t(i)] << ", " << y[size_t(i)];
  }
  EXPECT_GT(types, 3);
  EXPECT_GT(fired, 3);
}

TEST(SplitPrologue, cuts_off_what_depends_on_weights_alone) {
  const ir::Graph g = graph(R"(graph @g(x: f32[2,3], param w: f32[3,3], param b: f32[3]) {
    t = transpose(w, perm=[1,0])
    s = exp(w)
    u = mul(s, b)
    h = matmul(x, t)
    v = matmul(h, u)
    y = add(v, b)
    return y
  })");
  const Split split = split_prologue(g);
  ASSERT_EQ(split.made.size(), 1u);
  EXPECT_EQ(split.main.params().size(), 3u);
  Literals leaves;
  for (const ir::NodeId id : g.leaves())
    leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 3 + leaves.size()));
  ir::NamedLiterals named{{"x", leaves[0]}, {"w", leaves[1]}, {"b", leaves[2]}};
  const ir::NamedLiterals made = ir::interpret(split.prologue, {{"w", leaves[1]}, {"b", leaves[2]}});
  for (const auto& [name, value] : made) named.emplace(name, value);
  EXPECT_EQ(ir::interpret(split.main, named).at("y"), ir::interpret(g, leaves)[0]);
}

}  // namespace
}  // namespace rlx::passes
