#include "rlx/runtime/lockstep.h"

#include <gtest/gtest.h>

#include "rlx/ir/leaves.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/reduce.h"
#include "tests/support/graphs.h"
#include "tests/support/named_samples.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;
using test::named_samples;

const ir::Graph& layer() {
  static const ir::Graph g = graph(R"(graph @layer(x: f32[3,16], param w: f32[16,8], param b: f32[8]) {
    h = matmul(x, w)
    a = add(h, b)
    y = gelu(a)
    s = softmax(y, axis=1)
    z = mul(s, a)
    return z
  })");
  return g;
}

TEST(Deviation, is_relative_to_the_largest_magnitude) {
  const Literal a = Literal::of<float>({3}, {1, -9, 2}), b = Literal::of<float>({3}, {1, -8, 2});
  const Deviation d = deviation(a, b);
  EXPECT_DOUBLE_EQ(d.error, 0.1);
  EXPECT_EQ(d.element, 1);
  EXPECT_EQ(deviation(Literal::of<float>({1}, {NAN}), Literal::of<float>({1}, {NAN})).error, 0);
  EXPECT_EQ(deviation(Literal::of<float>({1}, {NAN}), Literal::of<float>({1}, {1})).error, INFINITY);
  EXPECT_EQ(deviation(Literal::of<float>({1}, {INFINITY}), Literal::of<float>({1}, {-INFINITY})).error,
            INFINITY);
}

TEST(Lockstep, finds_nothing_where_the_devices_agree) {
  const LockstepResult r = run_in_lockstep(layer(), named_samples(layer()));
  EXPECT_FALSE(r.parting) << r.parting->where << " " << r.parting->text;
  EXPECT_FALSE(r.nodes.empty());
  for (const auto& n : r.nodes) EXPECT_LT(n.error, 1e-4) << n.node;
}

// With no tolerance at all the first node that rounds differently is found, and its graph shows the same difference alone.
TEST(Lockstep, gives_the_first_node_as_a_graph_that_shows_the_difference) {
  const LockstepResult r = run_in_lockstep(layer(), named_samples(layer()), {.tolerance = 0});
  ASSERT_TRUE(r.parting);
  EXPECT_TRUE(r.parting->graph.verify().empty());
  const LockstepResult again = run_in_lockstep(r.parting->graph, r.parting->values, {.tolerance = 0});
  EXPECT_TRUE(again.parting);
  EXPECT_LE(r.parting->graph.len(), 6u);
  EXPECT_EQ(error_of([] { run_in_lockstep(layer(), named_samples(layer()), {.b = "tpu"}); }),
            cat("device: unknown device 'tpu'; known: ", join(device_names()), ", auto"));
}

// The first node of the first step that rounds otherwise, alone on its operands.
TEST(Lockstep, finds_the_node_inside_of_a_loop) {
  const ir::Graph g = graph(R"(graph @g(c: f32[4,8], xs: f32[5,4,8], param w: f32[8]) {
    r:2 = scan(c, w, xs, body=graph @step(c: f32[4,8], w: f32[8], x: f32[4,8]) {
      s = add(c, x)
      m = mul(s, w)
      n = softmax(m, axis=1)
      return n, s
    }, length=5, carries=1, consts=1)
    y = add(r, r)
    return y, r#1
  })");
  const LockstepResult r = run_in_lockstep(g, named_samples(g), {.tolerance = 0, .compile = {.fuse = false}});
  ASSERT_TRUE(r.parting);
  EXPECT_EQ(r.parting->where, "r scan, step 0: n softmax") << r.parting->text;
  EXPECT_EQ(r.parting->graph.len(), 2u) << cat(r.parting->graph);
  EXPECT_TRUE(run_in_lockstep(r.parting->graph, r.parting->values, {.tolerance = 0}).parting);
}

TEST(Lockstep, names_every_level) {
  const ir::Graph g = graph(R"(graph @g(p: bool[], c: f32[4,8], d: f32[4,8]) {
    r = if(p, c, d, then_body=graph @yes(c: f32[4,8], d: f32[4,8]) {
      w = while(c, d, cond=graph @more(c: f32[4,8], d: f32[4,8]) {
        t = full(value=1, shape=bool[])
        return t
      }, body=graph @step(c: f32[4,8], d: f32[4,8]) {
        s = softmax(c, axis=1)
        n = add(s, d)
        return n
      }, carries=1, max_iterations=3)
      return w
    }, else_body=graph @no(c: f32[4,8], d: f32[4,8]) { n = sub(c, d) return n })
    return r
  })");
  NamedLiterals values = named_samples(g);
  values["p"] = Literal::of<bool>({}, {true});
  const LockstepResult r = run_in_lockstep(g, values, {.tolerance = 0, .compile = {.fuse = false}});
  ASSERT_TRUE(r.parting);
  EXPECT_EQ(r.parting->where, "r if: w while, step 0: s softmax") << r.parting->text;
}

TEST(Reduce, leaves_the_operator_that_is_wrong_and_its_operands) {
  const ir::Graph g = graph(R"(graph @g(x: f32[4], y: f32[4]) {
    a = add(x, y)
    b = mul(a, y)
    c = exp(b)
    d = pow(c, a)
    e = sin(d)
    f = add(e, x)
    h = mul(f, y)
    return h, c
  })");
  // "Wrong" is whatever holds a pow.
  const auto wrong = [](const ir::Graph& candidate, const ir::NamedLiterals& values) {
    ir::arrange_leaves(candidate, values);  // the values always fit
    for (const ir::Node* n : candidate.nodes()) {
      if (n->op->name == "pow") return true;
    }
    return false;
  };
  const Reduced r = reduce_graph(g, named_samples(g), wrong);
  EXPECT_TRUE(r.graph.verify().empty());
  EXPECT_EQ(r.graph.outputs().size(), 1u);
  EXPECT_LE(r.graph.len(), 3u) << cat(r.graph);
  EXPECT_TRUE(wrong(r.graph, r.values));
}

// A fault that depends on the values stays: cut values are inputs with what they were.
TEST(Reduce, keeps_the_values_that_show_the_fault) {
  const ir::Graph g = graph(R"(graph @g(x: f32[2]) {
    a = mul(x, x)
    b = neg(a)
    c = log(b)
    d = add(c, x)
    return d
  })");
  const auto has_nan = [](const Literal& value) {
    for (int64_t i = 0; i < value.elements(); ++i) {
      if (std::isnan(value.real_at(i))) return true;
    }
    return false;
  };
  const auto makes_nan = [&](const ir::Graph& candidate, const ir::NamedLiterals& values) {
    for (const auto& [name, value] : values) {
      if (has_nan(value)) return false;
    }
    for (const auto& [name, value] : ir::interpret(candidate, values)) {
      if (has_nan(value)) return true;
    }
    return false;
  };
  const Reduced r = reduce_graph(g, {{"x", Literal::of<float>({2}, {1, 2})}}, makes_nan);
  ASSERT_EQ(r.graph.len(), 2u) << cat(r.graph);
  EXPECT_EQ(r.graph.node(r.graph.outputs()[0]).op->name, "log");
  EXPECT_EQ(error_of([&] {
              reduce_graph(g, {{"x", Literal::of<float>({2}, {1, 2})}},
                           [](const auto&, const auto&) { return false; });
            }),
            "reduce: the graph does not go wrong to begin with");
}

}  // namespace
}  // namespace rlx
