// Walking and copying graphs: clones, bodies, rewriting.
#include "rlx/ir/rewrite.h"

#include <gtest/gtest.h>

#include "rlx/ir/bodies.h"
#include "rlx/ir/build_def.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/all.h"
#include "tests/support/graphs.h"

namespace rlx::ir {
namespace {

using test::graph;

constexpr const char* kNested = R"(graph @outer(x: f64[2], param w: f64[2]) {
  a = neg(x)
  y = scan(a, w, carries=1, consts=1, length=2, body=graph(c: f64[2], w: f64[2]) {
    p = lt(c, w)
    q = all(p)
    r = if(q, c, w, then_body=graph @yes(a: f64[2], b: f64[2]) {
      n = neg(a)
      return n
    }, else_body=graph @no(a: f64[2], b: f64[2]) {
      s = add(a, b)
      return s
    })
    return r
  })
  return out=y
})";

Graph nested() {
  std::string text = kNested;
  text.replace(text.find("lt(c, w)"), 8, "compare(c, w, kind=lt)");
  return graph(text);
}

std::string ops_in(const Graph& g) {
  std::string out;
  for_each_node(g, [&](const Node& n) { out += cat(out.empty() ? "" : " ", n.op->name); });
  return out;
}

TEST(Bodies, every_node_is_visited_in_the_order_of_the_text) {
  EXPECT_EQ(ops_in(nested()),
            "input param neg input input compare all input input neg input input add if scan");
}

TEST(Bodies, any_node_looks_inside) {
  const auto is_add = [](const Node& n) { return n.is<ops::Add>(); };
  EXPECT_TRUE(any_node(nested(), is_add));
  EXPECT_FALSE(any_node(graph("graph(x: f64[2]) { return neg(x) }"), is_add));
}

TEST(Bodies, attributes_stay_the_same_object_when_no_body_changes) {
  const Graph g = nested();
  for (const Node* n : g.nodes())
    EXPECT_EQ(map_bodies(*n, [](const FieldInfo&, const GraphRef& body) { return body; }), n->attrs);
}

// neg(x) -> 0 - x, wherever it stands.
std::optional<Values> without_neg(Cloner& copy, const Node& n) {
  if (!n.is<ops::Neg>()) return std::nullopt;
  const Expr x{&copy.to(), copy.at(n.inputs[0])};
  return Values{ops::sub(zeros_like(x), x)};
}

TEST(Rewrite, reaches_every_body) {
  const Graph g = nested();
  const Rewritten out = rewrite(g, without_neg);
  EXPECT_EQ(out.changes, 2u);
  EXPECT_TRUE(out.graph.verify().empty());
  EXPECT_FALSE(any_node(out.graph, [](const Node& n) { return n.is<ops::Neg>(); }));
  EXPECT_EQ(out.graph.output_names(), std::vector<std::string>{"out"});
  const Literals in = {Literal::of<double>({2}, {1, -3}), Literal::of<double>({2}, {0.5, 2})};
  EXPECT_TRUE(interpret(out.graph, in)[0] == interpret(g, in)[0]);
}

TEST(Rewrite, what_takes_the_place_of_a_named_node_takes_its_name) {
  const Rewritten out = rewrite(graph("graph(x: f64[2]) { a = neg(x) return a }"), without_neg);
  EXPECT_EQ(out.graph.node(out.graph.outputs()[0]).name, "a");
}

TEST(Rewrite, without_changes_the_graph_is_equal_and_bodies_are_shared) {
  const Graph g = nested();
  const Rewritten out = rewrite(g, [](Cloner&, const Node&) { return std::nullopt; });
  EXPECT_EQ(out.changes, 0u);
  EXPECT_TRUE(out.graph == g);
  const auto body = [](const Graph& of) { return of.node(of.outputs()[0]).as<ops::Scan>().body; };
  EXPECT_EQ(body(out.graph), body(g));
}

// 2^40 paths lead to the innermost body; each level is rewritten once.
TEST(Rewrite, a_shared_body_is_rewritten_once) {
  auto body = std::make_shared<const Graph>(graph("graph(x: f64[]) { n = neg(x) return n }"));
  for (int level = 0; level < 40; ++level) {
    auto outer = std::make_shared<Graph>("level");
    Value v = outer->input("x", parse_shape("f64[]"));
    for (int i = 0; i < 2; ++i) v = make<ops::CustomFn>(*outer, {body, nullptr, nullptr}, {v});
    outer->set_outputs({v});
    body = outer;
  }
  size_t calls = 0;
  const Rewritten out = rewrite(*body, [&](Cloner& copy, const Node& n) {
    calls += n.is<ops::Neg>();
    return without_neg(copy, n);
  });
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(out.changes, size_t(1) << 40);
}

TEST(Cloner, copies_leaves_names_origins_and_outputs) {
  Graph from = graph("graph @f(x: f32[2], param w: f32[2]) { y = add(x, w) return best=y }");
  from.set_origin(from.outputs()[0].node, std::make_shared<Origin>(Origin{.label = "here"}));
  Graph to("f");
  Cloner copy(to);
  for (const Node* n : from.nodes()) copy.copy(*n);
  copy.copy_outputs(from);
  EXPECT_TRUE(to == from);
  EXPECT_EQ(to.node(to.outputs()[0]).origin->label, "here");
  EXPECT_EQ(to.node(to.outputs()[0]).name, "y");
}

TEST(Cloner, results_may_be_set_one_by_one) {
  const Graph from = graph("graph(x: f32[4]) { t:2 = top_k(x, k=2) return t, t#1 }");
  Graph to("g");
  Cloner copy(to);
  const Value first = to.input("a", parse_shape("f32[2]")), second = to.input("b", parse_shape("i32[2]"));
  const Values outputs = from.outputs();
  copy.set(outputs[0], first);
  EXPECT_TRUE(copy.has(outputs[0]));
  EXPECT_FALSE(copy.has(outputs[1]));
  copy.set(outputs[1], second);
  EXPECT_TRUE(copy.at(outputs[0]) == first);
  EXPECT_TRUE(copy.at(outputs[1]) == second);
  EXPECT_THROW(copy.at(from.value(from.leaves()[0])), Error);
}

// The name of an operator may be anybody's; its record is not.
struct OtherNeg {
  static constexpr std::string_view name = "neg", summary = "", doc = "", operands = "x";
  using Attrs = NoAttrs;
  static Shapes infer(Infer& c, Attrs&) { return {c.in(0)}; }
  static Literals reference(const Eval& c, const Attrs&) { return {c.in(0)}; }
};

TEST(Node, is_known_by_its_record_not_by_its_name) {
  Graph g("g");
  const Value x = g.input("x", parse_shape("f32[2]"));
  const Node& other = g.node(make<OtherNeg>(g, {}, {x}).value);
  EXPECT_TRUE(other.is<OtherNeg>());
  EXPECT_FALSE(other.is<ops::Neg>());
  OpTable table = ops::table();
  EXPECT_EQ(test::error_of([&] { table.add<OtherNeg>(); }),
            "ops: the table has an operator 'neg' already; names must be unique");
}

}  // namespace
}  // namespace rlx::ir
