#include "rlx/ir/graph.h"

#include <gtest/gtest.h>

#include "rlx/ir/leaves.h"
#include "tests/support/errors.h"
#include "tests/support/graphs.h"

namespace rlx::ir {
namespace {

using test::error_of;
using test::graph;

TEST(Graph, uses_count_operand_slots_and_outputs) {
  const Graph g = graph("graph(x: f32[2]) { y = mul(x, x) return y, x }");
  EXPECT_EQ(g.use_count(g.leaves()[0]), 3u);
  EXPECT_EQ(g.use_count(g.outputs()[0].node), 1u);
}

TEST(Graph, replace_moves_every_use_and_keeps_operands_before_users) {
  Graph g = graph("graph(x: f32[2]) { a = exp(x) b = sin(a) c = cos(a) return b, c, a }");
  const Value a = g.outputs()[2];
  // Made last, used by nodes that stand before it.
  const Expr made = ops::tanh({&g, g.value(g.leaves()[0])});
  g.replace(a, made);
  EXPECT_EQ(g.use_count(a.node), 0u);
  EXPECT_EQ(g.use_count(made.value.node), 3u);
  EXPECT_TRUE(g.verify().empty());
  EXPECT_EQ(g.erase_dead(), 1u);
  EXPECT_EQ(to_text(g),
            to_text(graph("graph(x: f32[2]) { %4 = tanh(x) b = sin(%4) c = cos(%4) return b, c, %4 }")));
}

// Uses come and go in every order; the lists stay what the graph says (verify) and no id is lost.
TEST(Graph, uses_stay_right_when_operands_change_and_nodes_go) {
  Graph g = graph("graph(x: f32[2], y: f32[2]) { return x }");
  const Value x = g.value(g.leaves()[0]), y = g.value(g.leaves()[1]);
  std::vector<NodeId> users;
  for (int i = 0; i < 40; ++i) users.push_back(ops::mul({&g, x}, {&g, i % 3 == 0 ? x : y}).value.node);
  g.set_outputs({x, g.value(users[5]), x});
  for (size_t i = 0; i < users.size(); i += 2) g.set_inputs(users[i], {y, i % 4 == 0 ? x : y});
  EXPECT_TRUE(g.verify().empty());
  for (size_t i = 39; i > 20; i -= 3) g.erase(users[i]);
  g.set_outputs({g.value(users[5]), y});
  EXPECT_TRUE(g.verify().empty());
  EXPECT_EQ(g.len(), 2 + 40 - 7u);
  EXPECT_EQ(g.nodes().size(), g.len());
  g.replace(x, y);
  EXPECT_EQ(g.use_count(x.node), 0u);
  EXPECT_TRUE(g.verify().empty());
  EXPECT_EQ(g.erase_dead(), 32u);
  for (const Value v : g.node(users[5]).inputs) EXPECT_TRUE(v == y);
  g.set_inputs(users[5], {x, x});
  EXPECT_EQ(g.use_count(x.node), 2u);
  EXPECT_TRUE(g.verify().empty());
}

TEST(Graph, an_erased_node_is_gone_from_order_and_constraints) {
  Graph g = graph("graph(x: f32[n*k], y: f32[p*q]) { a = add(x, y) b = exp(x) return b }");
  ASSERT_EQ(g.constraints().size(), 1u);
  g.erase(g.constraints()[0].node);
  EXPECT_EQ(g.constraints().size(), 0u);
  EXPECT_EQ(g.nodes().size(), 3u);
  const Graph copy = g;
  EXPECT_EQ(copy.nodes().size(), 3u);
  EXPECT_TRUE(copy.verify().empty());
}

TEST(Graph, leaves_keep_their_order_through_edits) {
  Graph g = graph("graph(a: f32[2], b: f32[2]) { y = add(a, b) return y }");
  const Expr late{&g, g.input("c", parse_shape("f32[2]"))};
  g.replace(g.outputs()[0], ops::mul(late, {&g, g.value(g.leaves()[1])}));
  std::vector<std::string> names;
  for (const NodeId id : g.leaves()) names.push_back(g.node(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Graph, refuses_values_of_another_graph_and_appends_nothing) {
  Graph g("one"), other("two");
  const Value x = g.input("x", parse_shape("f32[2]")), y = other.input("y", parse_shape("f32[2]"));
  EXPECT_EQ(error_of([&] { make<ops::Add>(g, {}, {x, y}); }),
            "add: operand 1 belongs to another graph than 'one'");
  EXPECT_EQ(error_of([&] { g.input("x", parse_shape("f32[3]")); }),
            "input: graph 'one' already has an input or param named 'x'; names must be unique");
  EXPECT_EQ(error_of([&] { make<ops::Add>(g, {}, {x}); }), "add: 1 operands; it takes 2 (a, b)");
  EXPECT_EQ(g.len(), 1u);
}

TEST(Graph, an_error_points_at_the_line_that_made_it) {
  Graph g("main");
  const Expr a{&g, g.input("a", parse_shape("f32[2]"))}, b{&g, g.input("b", parse_shape("f32[3]"))};
  try {
    const LocationScope here(g, std::source_location::current());
    ops::add(a, b);
    FAIL();
  } catch (const Error& e) {
    EXPECT_TRUE(e.origin().starts_with("graph_test.cpp:")) << e.what();
    EXPECT_EQ(e.message(),
              "add: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
              "of them 1");
  }
}

TEST(Graph, labels_nest) {
  Graph g("main");
  const Expr x{&g, g.input("x", parse_shape("f32[2]"))};
  Expr y;
  {
    const LabelScope outer(g, "layer3");
    const LabelScope inner(g, "attention");
    y = ops::exp(x);
  }
  EXPECT_EQ(g.node(y).origin->text(), "layer3/attention");
  EXPECT_EQ(g.node(ops::sin(y)).origin, nullptr);
}

TEST(Graph, copies_are_deep_and_keep_ids) {
  Graph g = graph("graph(x: f32[2]) { y = exp(x) return y }");
  Graph copy = g;
  copy.replace(copy.outputs()[0], ops::sin({&copy, copy.value(copy.leaves()[0])}));
  EXPECT_EQ(g.node(g.outputs()[0]).op->name, "exp");
  EXPECT_FALSE(g == copy);
  EXPECT_EQ(copy.node(1).op->name, "exp");
}

TEST(Graph, equality_sees_attributes_constants_and_bodies) {
  const auto same = [](const char* a, const char* b) {
    const Graph x = graph(a), y = graph(b);
    EXPECT_EQ(x == y, x.hash() == y.hash());
    return x == y;
  };
  EXPECT_TRUE(
      same("graph(x: f32[2]) { a = exp(x) return y=a }", "graph(x: f32[2]) { %7 = exp(x) return y=%7 }"));
  EXPECT_FALSE(same("graph() { return constant(value=f32[1]{1.0}) }",
                    "graph() { return constant(value=f32[1]{2.0}) }"));
  const char* loop =
      "graph(x: f32[2]) { return scan(x, length=2, carries=1, body=graph(c: f32[2]) { return exp(c) }) }";
  const char* other =
      "graph(x: f32[2]) { return scan(x, length=2, carries=1, body=graph(c: f32[2]) { return sin(c) }) }";
  EXPECT_TRUE(same(loop, loop));
  EXPECT_FALSE(same(loop, other));
}

TEST(Graph, verify_tells_every_error_at_once) {
  Graph g = graph("graph(x: f32[2]) { a = exp(x) b = sin(a) return b }");
  const NodeId a = g.node(g.outputs()[0]).inputs[0].node;
  g.node_mut(a).shapes[0] = parse_shape("f32[3]");
  g.node_mut(a).inputs[0] = Value{99, 0, 0};
  const auto errors = g.verify();
  ASSERT_GE(errors.size(), 3u);
  EXPECT_EQ(errors[0].message, "exp: operand 0 is %99#0, which does not exist");
  EXPECT_EQ(errors[1].message, "sin: declared f32[2]; its operands give f32[3]");
  EXPECT_EQ(errors[2].rule, "uses");
}

TEST(Graph, verify_finds_a_cycle) {
  Graph g = graph("graph(x: f32[2]) { a = exp(x) b = sin(a) return b }");
  const NodeId b = g.outputs()[0].node, a = g.node(b).inputs[0].node;
  g.set_inputs(a, {g.value(b)});
  bool found = false;
  for (const VerifyError& e : g.verify()) found = found || e.rule == "order";
  EXPECT_TRUE(found);
}

TEST(Bind, replaces_symbols_everywhere_and_checks_what_was_assumed) {
  const Graph g = graph(R"(graph(x: f32[batch,seq,4], y: f32[8,4]) {
    f = reshape(x, shape=(batch*seq, 4))
    s = add(f, y)
    return scan(s, length=2, carries=1, body=graph(c: f32[8,4]) { return exp(c) })
  })");
  EXPECT_EQ(g.dynamic_symbols(), (std::vector<std::string>{"batch", "seq"}));
  ASSERT_EQ(g.constraints().size(), 1u);
  const Graph bound = g.bind({{"batch", 2}, {"seq", 4}});
  EXPECT_FALSE(bound.has_dynamic_dims());
  EXPECT_EQ(cat(bound.shape(bound.outputs()[0])), "f32[8,4]");
  EXPECT_EQ(error_of([&] { g.bind({{"batch", 3}, {"seq", 4}}); }),
            "add: f32[12,4] and f32[8,4] do not broadcast; axis -2 has sizes 12 and 8; they must be equal or "
            "one of them 1");
  EXPECT_EQ(error_of([&] { g.bind({{"heads", 3}}); }),
            "bind: graph 'main' has no symbol 'heads'; it has batch, seq");
}

TEST(Bind, bodies_are_bound_too) {
  const Graph g = graph(R"(graph(x: f32[n]) {
    return scan(x, length=3, carries=1, body=graph(c: f32[n]) { return add(c, full(shape=f32[n], value=1.0)) })
  })");
  const Literal out = interpret(g, Literals{Literal::of<float>({2}, {1, 2})})[0];
  EXPECT_EQ(cat(out), "f32[2]{4.0, 5.0}");
}

TEST(Interpreter, every_problem_with_the_inputs_is_told_at_once) {
  const Graph g = graph("graph(x: f32[n,2], param w: f32[2], z: f32[]) { return add(mul(x, w), z) }");
  EXPECT_EQ(error_of([&] {
              interpret(g, NamedLiterals{{"x", Literal::of<double>({3, 2}, std::vector<double>(6))},
                                         {"v", Literal()}});
            }),
            "run: 'x' is f32[n,2], the value is f64[3,2]; param 'w' (f32[2]) is missing; input 'z' (f32[]) "
            "is missing; 'v' is not "
            "an input; did you mean 'x'; graph 'main' takes x, w, z");
}

TEST(Interpreter, frees_values_after_their_last_use) {
  const Graph g = graph("graph(x: f64[1000]) { return sin(sin(sin(sin(sin(x))))) }");
  Interpreter run;
  run.run(g, Literals{Literal::zeros(parse_shape("f64[1000]"))});
  EXPECT_EQ(run.stats().peak_bytes, 16000);
  EXPECT_EQ(run.stats().live_bytes, 0);
}

TEST(Graph, without_outputs_does_not_run_to_nothing) {
  Graph g("none");
  g.input("x", Shape(DType::f32, {2}));
  const std::string says = "run: graph 'none' has no outputs; set_outputs says what it computes";
  const Literal x = Literal::of<float>({2}, {1, 2});
  EXPECT_EQ(test::message_of([&] { interpret(g, NamedLiterals{{"x", x}}); }), says);
  EXPECT_EQ(test::message_of([&] { interpret(g, Literals{x}); }), says);
}

TEST(Graph, its_anchor_follows_moves_and_tells_its_end) {
  std::shared_ptr<GraphAnchor> anchor;
  {
    Graph a("a");
    anchor = a.anchor();
    EXPECT_EQ(anchor->graph, &a);
    Graph b = std::move(a);
    EXPECT_EQ(anchor->graph, &b);
    const Graph copy = b;
    EXPECT_EQ(anchor->graph, &b);
    Graph c("c");
    c = std::move(b);
    EXPECT_EQ(anchor->graph, &c);
    EXPECT_EQ(c.anchor(), anchor);
  }
  EXPECT_EQ(anchor->graph, nullptr);
  EXPECT_EQ(anchor->name, "a");
}

TEST(Graph, a_leaf_moves_in_front_of_another) {
  Graph g("g");
  const Shape f32(DType::f32, {});
  const Value step = g.input("step", f32), carry = g.input("carry", f32);
  g.move_leaf_before(carry.node, step.node);
  EXPECT_EQ(g.leaves(), (std::vector<NodeId>{carry.node, step.node}));
  const Graph copy = g;
  EXPECT_EQ(copy.leaves(), g.leaves());
}

}  // namespace
}  // namespace rlx::ir
