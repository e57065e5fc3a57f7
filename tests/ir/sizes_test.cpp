// Sizes that must be equal become one: types, records, forms, binding.
#include <gtest/gtest.h>

#include "rlx/ir/call.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/json.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/support/graphs.h"

namespace rlx::ir {
namespace {

using test::error_of;
using test::graph;

std::string type(const Graph& g, std::string_view leaf) { return cat(g.node(*g.find_leaf(leaf)).shapes[0]); }
std::string output_type(const Graph& g, size_t i = 0) { return cat(g.shape(g.outputs()[i])); }

void expect_forms_read_back(const Graph& g) {
  EXPECT_TRUE(g.verify().empty()) << cat(g.verify()[0]);
  const Graph text = parse_graph(to_text(g), ops::table()), json = graph_from_json(to_json(g), ops::table());
  EXPECT_EQ(to_text(text), to_text(g));
  EXPECT_EQ(to_text(json), to_text(g));
  EXPECT_TRUE(text == g);
  EXPECT_TRUE(json == g);
  EXPECT_TRUE(text.hash() == g.hash());
  EXPECT_TRUE(Graph(g) == g);
}

TEST(Sizes, equal_by_assumption_is_equal_by_type) {
  const Graph g = graph("graph @f(x: f64[n], y: f64[m]) { z = mul(x, y) return z }");
  EXPECT_EQ(type(g, "x"), "f64[n]");
  EXPECT_EQ(type(g, "y"), "f64[n]");
  EXPECT_EQ(output_type(g), "f64[n]");
  EXPECT_EQ(g.solved_symbols(), (DimSubstitution{{"m", Dim::symbol("n")}}));
  EXPECT_EQ(to_text(g),
            "graph @f(x: f64[n], y: f64[n]) where m = n {\n  z = mul(x, y) : f64[n]\n  return z\n}\n");
  expect_forms_read_back(g);
}

TEST(Sizes, nodes_made_before_follow) {
  const Graph g = graph(R"(graph(x: f64[n,4], y: f64[m,k]) {
    a = exp(y)
    b = reduce(a, axes=[1])
    c = reshape(a, shape=(m*k))
    d = add(x, y)
    return a, b, c, d
  })");
  EXPECT_EQ(output_type(g, 0), "f64[n,4]");
  EXPECT_EQ(output_type(g, 1), "f64[n]");
  EXPECT_EQ(output_type(g, 2), "f64[4*n]");
  EXPECT_EQ(output_type(g, 3), "f64[n,4]");
  expect_forms_read_back(g);
}

TEST(Sizes, expressions_are_solved_where_there_is_one_solution) {
  const Graph doubled = graph("graph(x: f64[2*n], y: f64[2*m]) { return add(x, y) }");
  EXPECT_EQ(type(doubled, "y"), "f64[2*n]");
  const Graph shifted = graph("graph(x: f64[n], y: f64[m+1]) { return add(x, y) }");
  EXPECT_EQ(type(shifted, "x"), "f64[m+1]");
  const Graph joined = graph(R"(graph(past: f64[p,2], new: f64[s,2], all: f64[t,2]) {
    return add(concat(past, new, axis=0), all)
  })");
  EXPECT_EQ(type(joined, "all"), "f64[p+s,2]");
  for (const Graph* g : {&doubled, &shifted, &joined}) expect_forms_read_back(*g);
}

TEST(Sizes, an_equation_without_a_unique_solution_waits) {
  const Graph g = graph(R"(graph(x: f64[n,k], y: f64[p,q], z: f64[a]) {
    r = reshape(x, shape=(n*k))
    s = reshape(y, shape=(p*q))
    return add(r, s)
  })");
  ASSERT_EQ(g.constraints().size(), 1u);
  expect_forms_read_back(g);
  EXPECT_EQ(
      error_of([&] { g.bind({{"n", 2}, {"k", 3}, {"p", 2}, {"q", 2}}); }),
      "add: f64[6] and f64[4] do not broadcast; axis -1 has sizes 6 and 4; they must be equal or one of "
      "them 1");
  // Once three sizes are known the fourth is.
  const Graph most = g.bind({{"n", 2}, {"k", 3}, {"p", 2}});
  EXPECT_EQ(type(most, "y"), "f64[2,3]");
  EXPECT_TRUE(most.constraints().empty());
  EXPECT_EQ(most.dynamic_symbols(), (std::vector<std::string>{"a"}));
  // A product of 1 does not turn the question into a broadcast.
  EXPECT_EQ(error_of([&] { g.bind({{"n", 1}, {"k", 1}, {"p", 2}, {"q", 2}}); }),
            "add: sizes differ, 1 (k*n = 1) and 4 (p*q = 4)");
}

TEST(Sizes, a_symbol_never_broadcasts) {
  const Graph g = graph("graph @f(x: f64[n], y: f64[4], one: f64[1]) { return add(add(x, y), one) }");
  EXPECT_EQ(type(g, "x"), "f64[4]");
  EXPECT_EQ(error_of([&] { g.bind({{"n", 1}}); }), "bind: n = 1, but in graph 'f' n is 4");
  EXPECT_FALSE(g.bind({{"n", 4}}).has_dynamic_dims());
}

TEST(Sizes, binding_knows_the_old_names) {
  const Graph g = graph("graph @f(x: f64[n], y: f64[m], z: f64[2*k]) { return add(add(x, y), z) }");
  EXPECT_EQ(type(g, "x"), "f64[2*k]");
  EXPECT_EQ(type(g.bind({{"m", 6}}), "z"), "f64[6]");
  EXPECT_EQ(error_of([&] { g.bind({{"m", 7}}); }), "bind: m = 7, but in graph 'f' m is 2*k");
  EXPECT_EQ(error_of([&] { g.bind({{"n", 4}, {"k", 3}}); }),
            "bind: n = 4, but in graph 'f' n is 2*k, which is 6");
  EXPECT_EQ(error_of([&] { g.bind({{"q", 4}}); }), "bind: graph 'f' has no symbol 'q'; it has k, m, n");
  const Graph bound = g.bind({{"m", 6}});
  EXPECT_TRUE(bound.solved_symbols().empty());
  EXPECT_TRUE(bound == graph("graph @f(x: f64[6], y: f64[6], z: f64[6]) { return add(add(x, y), z) }"));
}

TEST(Sizes, a_contradiction_is_an_error_and_changes_nothing) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[n,n]"))}, y{&g, g.input("y", parse_shape("f64[4,5]"))};
  const Graph before = g;
  EXPECT_EQ(error_of([&] { ops::add(x, y); }), "add: sizes differ, 5 (n = 5) and 4");
  EXPECT_TRUE(g == before);
  EXPECT_EQ(g.len(), 2u);
  // A node that is already there may be what cannot follow.
  ops::argmax(x, 0, false, DType::i32);
  const Expr empty{&g, g.input("empty", parse_shape("f64[0,0]"))};
  EXPECT_EQ(error_of([&] { ops::add(x, empty); }),
            "argmax: axis 0 of x: f64[0,0] is empty and has no position");
  EXPECT_EQ(type(g, "x"), "f64[n,n]");
}

TEST(Sizes, sizes_given_late_are_brought_up_to_date) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f64[n]"))}, y{&g, g.input("y", parse_shape("f64[m]"))};
  const Dim m = y.dim(0);
  ops::add(x, y);
  EXPECT_EQ(cat(full(g, Shape(DType::f64, {m}), 1).shape()), "f64[n]");
  EXPECT_EQ(cat(g.shape(g.input("z", Shape(DType::f64, {m * m})))), "f64[n*n]");
  EXPECT_EQ(g.resolve(m), Dim::symbol("n"));
}

TEST(Sizes, a_graph_can_state_what_it_assumes) {
  const Graph g = graph("graph @f(x: f64[a,b], y: f64[c,d]) where a = 2*c, b*d = 12 { return x, y }");
  EXPECT_EQ(type(g, "x"), "f64[2*c,b]");
  ASSERT_EQ(g.constraints().size(), 1u);
  expect_forms_read_back(g);
  EXPECT_EQ(type(g.bind({{"b", 3}}), "y"), "f64[c,4]");
  EXPECT_EQ(error_of([&] { g.bind({{"b", 5}}); }), "graph 'f': sizes differ, 5*d (b*d = 5*d) and 12");
  EXPECT_EQ(error_of([] { graph("graph(x: f64[n]) where n = n+1 { return x }"); }),
            "parse: graph 'main': sizes differ, n and n+1");
}

TEST(Sizes, too_many_symbols_are_refused) {
  std::string text = "graph(";
  for (int i = 0; i < 1100; ++i) text += cat(i ? ", " : "", "x", i, ": f32[n", i, "]");
  EXPECT_EQ(
      error_of([&] { graph(text + ") { return add(x0, x1) }"); }),
      "parse: graph 'main': more than 1024 symbols, some of which must be equal; use one name for one size");
  EXPECT_EQ(error_of([&] { graph(text + ") { return x0, x1 }"); }), "no error");
}

TEST(Sizes, bodies_share_the_symbols_of_the_graph_around_them) {
  const Graph rnn = graph(R"(graph @rnn(xs: f32[m,n,4], h: f32[n,4]) {
    y = scan(h, xs, length=m, carries=1, body=graph(h: f32[n,4], x: f32[n,4]) { return tanh(add(h, x)) })
    return y
  })");
  expect_forms_read_back(rnn);
  EXPECT_FALSE(rnn.bind({{"m", 3}, {"n", 2}}).has_dynamic_dims());
  EXPECT_EQ(rnn.bind({{"m", 3}}).dynamic_symbols(), (std::vector<std::string>{"n"}));
  // Other names inside, one of them found equal to another there.
  const Graph renamed = graph(R"(graph @rnn(xs: f32[m,n,4], h: f32[n,4]) {
    y = scan(h, xs, length=t, carries=1, body=graph(h: f32[a,4], x: f32[b,c]) { return tanh(add(h, x)) })
    return y
  })");
  EXPECT_EQ(renamed.dynamic_symbols(), (std::vector<std::string>{"m", "n"}));
  expect_forms_read_back(renamed);
  const Literals in{Literal::full(parse_shape("f32[3,2,4]"), 0.5), Literal::zeros(parse_shape("f32[2,4]"))};
  EXPECT_EQ(interpret(rnn, in), interpret(renamed, in));
}

TEST(Sizes, what_a_body_asks_for_holds_outside) {
  const Graph g = graph(R"(graph(p: bool[], x: f64[n], y: f64[m]) {
    z = if(p, x, y, then_body=graph(a: f64[n], b: f64[m]) { return add(a, b) },
           else_body=graph(a: f64[n], b: f64[m]) { return mul(a, a) })
    return z
  })");
  EXPECT_EQ(type(g, "y"), "f64[n]");
  expect_forms_read_back(g);
  EXPECT_EQ(error_of([&] {
              interpret(g, NamedLiterals{{"p", Literal::of<bool>({}, {true})},
                                         {"x", Literal::of<double>({1}, {1})},
                                         {"y", Literal::of<double>({2}, {1, 2})}});
            }),
            "run: symbol 'n' = m would be both 1 and 2 (y: f64[n] given f64[2]); graph 'main' takes p, x, y");
}

TEST(Sizes, an_edit_that_joins_sizes_is_found) {
  Graph g = graph("graph(x: f64[n], y: f64[m]) { return add(x, x), y }");
  const NodeId sum = g.outputs()[0].node;
  g.set_inputs(sum, {g.value(g.leaves()[0]), g.value(g.leaves()[1])});
  ASSERT_EQ(g.verify().size(), 1u);
  EXPECT_EQ(g.verify()[0].message,
            "add: sizes may differ, n and m; say that they are equal with assume_equal");
  g.assume_equal(Dim::symbol("n"), Dim::symbol("m"));
  EXPECT_TRUE(g.verify().empty());
}

TEST(Call, symbols_from_leaves_of_expressions) {
  const Graph g =
      graph("graph(x: f32[2*n,m], y: f32[past+seq], z: f32[seq,3], s: f32[k*k]) { return x, y, z, s }");
  const Call call = match_call(g, {{"s", parse_shape("f32[16]")},
                                   {"x", parse_shape("f32[6,5]")},
                                   {"y", parse_shape("f32[9]")},
                                   {"z", parse_shape("f32[2,3]")}});
  EXPECT_EQ(call.order, (std::vector<std::string>{"x", "y", "z", "s"}));
  const DimBinding& b = call.sizes;
  EXPECT_EQ(b.len(), 5u);
  EXPECT_EQ(b.get("n"), 3);
  EXPECT_EQ(b.get("m"), 5);
  EXPECT_EQ(b.get("past"), 7);
  EXPECT_EQ(b.get("seq"), 2);
  EXPECT_EQ(b.get("k"), 4);
}

TEST(Call, every_problem_at_once) {
  const Graph g = graph("graph @f(x: f32[2*n], y: f32[n], z: f32[n,m], w: f32[3]) { return x, y, z, w }");
  EXPECT_EQ(
      error_of([&] {
        match_call(g, {{"x", parse_shape("f32[7]")},
                       {"y", parse_shape("f32[2]")},
                       {"z", parse_shape("f32[3,1]")},
                       {"v", parse_shape("f32[3]")}});
      }),
      "run: 'x' is f32[2*n], the value is f32[7]; input 'w' (f32[3]) is missing; 'v' is not an input; did "
      "you mean 'x'; symbol 'n' would be both 2 and 3 (z: f32[n,m] given f32[3,1]); graph 'f' takes x, y, "
      "z, w");
  EXPECT_EQ(error_of([&] {
              match_call(g, {{"x", parse_shape("f32[8]")},
                             {"y", parse_shape("f32[2]")},
                             {"z", parse_shape("f32[4,1]")},
                             {"w", parse_shape("f32[3]")}});
            }),
            "run: symbol 'n' would be both 4 and 2 (y: f32[n] given f32[2]); graph 'f' takes x, y, z, w");
}

TEST(Call, what_the_leaves_leave_open_is_told_or_found_by_the_graph) {
  const Graph open = graph("graph(x: f32[n*m]) { return x }");
  const Literals six{Literal::zeros(parse_shape("f32[6]"))};
  EXPECT_EQ(error_of([&] { interpret(open, six); }),
            "run: the inputs do not tell the size of m, n; bind it first");
  EXPECT_EQ(interpret(open.bind({{"n", 2}}), six)[0].elements(), 6);
  EXPECT_EQ(error_of([&] { interpret(open.bind({{"n", 4}}), six); }),
            "run: input 'x' is f32[4*m]; the value is f32[6]");
}

TEST(Positions, a_dtype_holds_those_of_its_axis_or_is_refused) {
  EXPECT_EQ(error_of([] { graph("graph(x: f32[300]) { return argmax(x, dtype=i8) }"); }),
            "parse: argmax: dtype i8 does not hold the positions of an axis of 300; it is exact up to 127");
  EXPECT_EQ(error_of([] { graph("graph(x: f32[128]) { return argmin(x, dtype=i8) }"); }), "no error");
  EXPECT_EQ(error_of([] { graph("graph() { return iota(shape=i8[300]) }"); }),
            "parse: iota: dtype i8 does not hold the positions of an axis of 300; it is exact up to 127");
  EXPECT_EQ(error_of([] { graph("graph() { return iota(shape=f16[2050]) }"); }),
            "parse: iota: dtype f16 does not hold the positions of an axis of 2050; it is exact up to 2048");
  // A symbol is checked when it becomes a number.
  const Graph g = graph("graph(x: f32[n]) { return argmax(x, dtype=u8), iota(shape=i8[n]) }");
  EXPECT_EQ(interpret(g, Literals{Literal::zeros(parse_shape("f32[100]"))})[1].real_at(99), 99);
  EXPECT_EQ(error_of([&] { g.bind({{"n", 200}}); }),
            "iota: dtype i8 does not hold the positions of an axis of 200; it is exact up to 127");
  EXPECT_EQ(error_of([&] { interpret(g, Literals{Literal::zeros(parse_shape("f32[300]"))}); }),
            "argmax: dtype u8 does not hold the positions of an axis of 300; it is exact up to 255");
}

TEST(Sizes, attributes_tell_what_a_symbol_is) {
  const Graph heads = graph(R"(graph(q: f32[b,s,c], k: f32[b,t,d], v: f32[b,t,4]) {
    y:2 = attention(q, k, v, num_heads=2, head_dim=3)
    return y
  })");
  EXPECT_EQ(type(heads, "q"), "f32[b,s,6]");
  EXPECT_EQ(type(heads, "k"), "f32[b,t,6]");
  EXPECT_EQ(output_type(heads), "f32[b,s,4]");
  expect_forms_read_back(heads);
  const Graph tables =
      graph("graph(x: f32[b,s,8], c: f32[r,h], d: f32[r,i]) { return rope(x, c, d, head_dim=4) }");
  EXPECT_EQ(type(tables, "c"), "f32[r,2]");
  EXPECT_EQ(type(tables, "d"), "f32[r,2]");
  const Graph net = graph(R"(graph(x: f32[b,s,w], up: f32[u,f], gate: f32[g,h], down: f32[k,4]) {
    return swiglu_ffn(x, up, gate, down)
  })");
  EXPECT_EQ(type(net, "gate"), type(net, "up"));
  EXPECT_EQ(
      error_of([] {
        graph("graph(q: f32[2,n], k: f32[2,4], v: f32[2,4]) { return attention(q, k, v, num_heads=2) }");
      }),
      "parse: attention: q: f32[2,n] does not divide into 2 heads; its last axis is heads * head_dim");
}

TEST(Sizes, a_kernel_of_symbolic_size_gives_a_result_of_symbolic_size) {
  const Graph g =
      graph("graph(x: f64[1,1,n], w: f64[1,1,k]) { return conv(x, w, stride=[2], dilation=[3]) }");
  const auto ones = [](int64_t n) { return Literal::full(Shape(DType::f64, {1, 1, n}), 1); };
  EXPECT_EQ(cat(interpret(g, Literals{ones(9), ones(2)})[0]), "f64[1,1,3]{2.0, 2.0, 2.0}");
  EXPECT_EQ(cat(interpret(g, Literals{ones(9), ones(3)})[0]), "f64[1,1,2]{3.0, 3.0}");
}

TEST(Interpreter, a_cycle_is_the_users_error) {
  Graph g = graph("graph @f(x: f32[2]) { a = exp(x) b = sin(a) return b }");
  const NodeId b = g.outputs()[0].node, a = g.node(b).inputs[0].node;
  g.set_inputs(a, {g.value(b)});
  const std::string told = cat("graph 'f': %", a, " (exp) depends on itself; a graph must have no cycle");
  EXPECT_EQ(error_of([&] { interpret(g, Literals{Literal::zeros(parse_shape("f32[2]"))}); }), told);
  EXPECT_EQ(error_of([&] { g.topo_order(); }), told);
  EXPECT_EQ(error_of([&] { Graph(g).topo_order(); }), told);
}

TEST(Interpreter, a_tensor_that_no_memory_holds_is_the_users_error) {
  for (const char* op : {"full(shape=f32[4000000000000])", "iota(shape=f64[4000000000000])",
                         "pad(exp(x), low=(4000000000000), high=(0))", "expand(x, shape=(4000000000000))"}) {
    SCOPED_TRACE(op);
    try {
      interpret(graph(cat("graph(x: f32[1]) { return ", op, " }")),
                Literals{Literal::zeros(parse_shape("f32[1]"))});
      ADD_FAILURE() << "it ran";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    }
  }
}

}  // namespace
}  // namespace rlx::ir
