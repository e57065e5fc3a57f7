// Rows of the public surface: the structure of graphs.
#include <sstream>

#include "rlx/ir/leaves.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using test::f32;

// x -> exp -> (neg, and exp + neg)
struct Small {
  Graph g{"small"};
  Value x = g.input("x", Shape(DType::f32, {2}));
  Value e = g.exp(x), n = g.neg(e), s = g.add(e, n);
  Small() { g.set_outputs({s}); }
  Literal run() const { return ir::interpret(g, Literals{f32({2}, {0, 1})})[0]; }
};

TEST(GraphRow, len) { EXPECT_EQ(Small().g.len(), 4u); }
TEST(GraphRow, is_empty) {
  EXPECT_TRUE(Graph("g").is_empty());
  EXPECT_FALSE(Small().g.is_empty());
}
TEST(GraphRow, node) {
  const Small m;
  EXPECT_EQ(m.g.node(m.e.node).op->name, "exp");
  EXPECT_TRUE(Value(m.g.node(m.e.node)) == m.e);
  EXPECT_EQ(test::message_of([&] { m.g.node(99); }), "graph 'small': there is no node %99");
}
TEST(GraphRow, nodes) {
  const Small m;
  std::string names;
  for (const ir::Node* n : m.g.nodes()) names += cat(n->op->name, " ");
  EXPECT_EQ(names, "input exp neg add ");
}
TEST(GraphRow, shape) { EXPECT_EQ(cat(Small().g.shape(Small().s)), "f32[2]"); }
TEST(GraphRow, set_outputs) {
  Small m;
  m.g.set_outputs({m.e, m.x}, {"a", "b"});
  const auto out = m.g.interpret({{"x", f32({2}, {0, 0})}});
  EXPECT_EQ(out.at("a").real_at(0), 1);
  EXPECT_EQ(out.at("b").real_at(0), 0);
}
TEST(GraphRow, outputs) {
  const Small m;
  ASSERT_EQ(m.g.outputs().size(), 1u);
  EXPECT_TRUE(m.g.outputs()[0] == m.s);
  EXPECT_EQ(m.run().real_at(1), 0);  // e^1 - e^1
}
TEST(GraphRow, set_inputs) {
  Small m;
  m.g.set_inputs(m.n.node, {m.x});
  EXPECT_TRUE(m.g.verify().empty());
  EXPECT_EQ(m.run().real_at(0), 1);  // e^0 - 0
}
TEST(GraphRow, node_mut) {
  Small m;
  m.g.node_mut(m.n.node).shapes[0] = Shape(DType::f32, {3});
  const auto errors = m.g.verify();
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors[0].message, "neg: declared f32[3]; its operands give f32[2]");
}
TEST(GraphRow, nodes_mut) {
  Small m;
  for (ir::Node* n : m.g.nodes_mut()) {
    if (n->name.empty()) n->name = cat(n->op->name, "_node");
  }
  EXPECT_NE(m.g.to_text().find("exp_node = exp(x)"), std::string::npos) << m.g.to_text();
}
TEST(GraphRow, append_node) {
  Small m;
  const Value y = m.g.append_node("mul", {m.e, m.e}, Shape(DType::f32, {2}), "square");
  m.g.set_outputs({y});
  EXPECT_EQ(m.g.output_name(0), "square");
  EXPECT_NEAR(m.run().real_at(1), std::exp(2.0), 1e-5);
  const size_t before = m.g.len();
  EXPECT_THROW(m.g.append_node("mul", {m.e, m.e}, Shape(DType::f32, {3})), ShapeError);
  EXPECT_EQ(m.g.len(), before);
}
TEST(GraphRow, add_node) {
  Small m;
  m.g.set_outputs({m.g.add_node("sqrt", {m.e})});
  EXPECT_NEAR(m.run().real_at(1), std::exp(0.5), 1e-6);
  EXPECT_EQ(test::message_of([&] { m.g.add_node("sqrd", {m.e}); }),
            "ops: unknown operator 'sqrd'; did you mean 'sqrt'");
}
TEST(GraphRow, users) {
  const Small m;
  EXPECT_EQ(m.g.users(m.e.node).size(), 2u);
  EXPECT_EQ(m.g.users(m.s.node)[0].user, ir::kNoNode);  // an output is a use
}
TEST(GraphRow, use_count) {
  const Small m;
  EXPECT_EQ(m.g.use_count(m.e.node), 2u);
  EXPECT_EQ(m.g.use_count(m.s), 1u);
}
TEST(GraphRow, topo_order) { EXPECT_EQ(Small().g.topo_order(), (std::vector<NodeId>{0, 1, 2, 3})); }
TEST(GraphRow, reverse_topo) { EXPECT_EQ(Small().g.reverse_topo(), (std::vector<NodeId>{3, 2, 1, 0})); }
TEST(GraphRow, has_dynamic_dims) {
  Graph g("g");
  EXPECT_FALSE(g.has_dynamic_dims());
  g.input("x", parse_shape("f32[batch,2]"));
  EXPECT_TRUE(g.has_dynamic_dims());
}
TEST(GraphRow, dynamic_symbols) {
  Graph g("g");
  g.input("x", parse_shape("f32[seq,batch*2]"));
  EXPECT_EQ(g.dynamic_symbols(), (std::vector<std::string>{"batch", "seq"}));
}
TEST(GraphRow, bind) {
  const Graph g = Graph::parse("graph(x: f32[n]) {\n  y = reduce(x)\n  return y\n}");
  const Graph b = g.bind({{"n", 3}});
  EXPECT_EQ(cat(b.shape(b.inputs()[0] == 0 ? b.value(0) : Value{})), "f32[3]");
  EXPECT_EQ(ir::interpret(b, Literals{f32({3}, {1, 2, 3})})[0].real_at(0), 6);
}
TEST(GraphRow, parse) {
  const Graph g = Graph::parse("graph(x: f32[2]) {\n  y = mul(x, x)\n  return y\n}");
  EXPECT_EQ(ir::interpret(g, Literals{f32({2}, {2, 3})})[0].real_at(1), 9);
  std::ostringstream out;
  out << g;
  EXPECT_TRUE(Graph::parse(out.str()) == g);
}
TEST(GraphRow, to_json) { EXPECT_NE(Small().g.to_json().find(R"("op":"exp")"), std::string::npos); }
TEST(GraphRow, from_json) {
  const Small m;
  const Graph back = Graph::from_json(m.g.to_json());
  EXPECT_TRUE(back == m.g);
  EXPECT_EQ(ir::interpret(back, Literals{f32({2}, {0, 1})})[0].real_at(0), 0);
}
TEST(GraphRow, save) {
  const test::Scratch scratch;
  Small().g.save(scratch.path("g"));
  EXPECT_TRUE(Graph::load(scratch.path("g")) == Small().g);
}
TEST(GraphRow, load) {
  const Graph g = Graph::load("tests/lang/data/graph_v1.safetensors");
  EXPECT_EQ(g.name(), "mlp");
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "f32[batch,80]");
}
TEST(GraphRow, inspect) {
  const std::string text = Small().g.inspect();
  EXPECT_NE(text.find("graph @small: 4 nodes, 1 output, 32 B in results"), std::string::npos) << text;
  EXPECT_NE(text.find("add 1, exp 1, input 1, neg 1"), std::string::npos) << text;
  EXPECT_NE(text.find("// rows_structure_test.cpp:"), std::string::npos) << text;
}
TEST(GraphRow, from) { EXPECT_TRUE(Graph::from(Small().g) == Small().g); }
TEST(GraphRow, to_mir) { EXPECT_TRUE(Small().g.to_mir() == Small().g); }

TEST(GraphRow, input) {
  test::expect_row({f32({2}, {1, 2})}, [](Graph&, const Values& x) { return x[0]; }, f32({2}, {1, 2}));
  Graph g("g");
  g.input("x", Shape(DType::f32, {}));
  EXPECT_EQ(test::message_of([&] { g.input("x", Shape(DType::f32, {})); }),
            "input: graph 'g' already has an input or param named 'x'; names must be unique");
}
TEST(GraphRow, param) {
  Graph g("g");
  g.set_outputs({g.mul(g.param("w", Shape(DType::f32, {2})), g.input("x", Shape(DType::f32, {2})))}, {"y"});
  const auto out = g.interpret({{"w", f32({2}, {2, 3})}, {"x", f32({2}, {5, 7})}});
  EXPECT_EQ(out.at("y").real_at(1), 21);
  EXPECT_EQ(g.params().size(), 1u);
}
TEST(GraphRow, constant) {
  test::expect_row(
      {f32({2}, {1, 2})},
      [](Graph& g, const Values& x) {
        return g.add(x[0], g.constant(std::vector<float>{10, 20}, Shape(DType::f32, {2})));
      },
      f32({2}, {11, 22}));
  Graph g("g");
  EXPECT_EQ(test::message_of([&] { g.constant(std::vector<float>{1}, Shape(DType::f32, {2})); }),
            "constant: 1 values for f32[2]; it has 2");
}

TEST(GraphDeclared, a_declared_shape_is_checked_and_never_overrides) {
  Graph g("g");
  const Value x = g.input("x", Shape(DType::f32, {2, 3}));
  EXPECT_NO_THROW(g.exp(x, Shape(DType::f32, {2, 3})));
  const size_t before = g.len();
  try {
    g.sum(x, {1}, false, Shape(DType::f32, {2, 1}));
    FAIL() << "no error";
  } catch (const ShapeError& e) {
    EXPECT_EQ(e.message(), "reduce: declared f32[2,1], its operands give f32[2]");
    EXPECT_TRUE(e.origin().starts_with("rows_structure_test.cpp:")) << e.origin();
  }
  EXPECT_EQ(g.len(), before);
}

TEST(GraphErrors, point_at_the_line_of_the_call) {
  Graph g("g");
  const Value x = g.input("x", Shape(DType::f32, {2})), y = g.input("y", Shape(DType::f32, {3}));
  const unsigned line = __LINE__ + 2;
  try {
    g.add(x, y);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.origin(), cat("rows_structure_test.cpp:", line));
  }
}

}  // namespace
}  // namespace rlx
