// Rows of the public surface: loops, branches, custom operators, sequence models, sampling.
#include <cmath>

#include "rlx/ops/control/custom_op.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using namespace test;

const Literal kOne = f64({}, {1});

Graph doubled() { return Graph::parse("graph(c: f64[]) {\n  n = add(c, c)\n  return n\n}"); }
Graph sum_up() { return Graph::parse("graph(c: f64[], x: f64[]) {\n  n = add(c, x)\n  return n\n}"); }

TEST(GraphRow, scan) {
  expect_row({kOne}, [](Graph& g, const Values& v) { return g.scan(v[0], doubled(), 5); }, f64({}, {32}));
}
TEST(GraphRow, scan_checkpointed) {
  expect_row(
      {kOne}, [](Graph& g, const Values& v) { return g.scan_checkpointed(v[0], doubled(), 7, 3); },
      f64({}, {128}));
}
TEST(GraphRow, scan_with_xs) {
  expect_row(
      {kOne, f64({3}, {10, 20, 30})},
      [](Graph& g, const Values& v) { return g.scan_with_xs(v[0], {v[1]}, sum_up(), 3); }, f64({}, {61}));
}
TEST(GraphRow, scan_with_bcasts_and_xs) {
  const Graph body =
      Graph::parse("graph(c: f64[], k: f64[], x: f64[]) {\n  p = mul(k, x)\n  n = add(c, p)\n  return n\n}");
  expect_row(
      {kOne, f64({}, {2}), f64({3}, {10, 20, 30})},
      [&](Graph& g, const Values& v) { return g.scan_with_bcasts_and_xs(v[0], {v[1]}, {v[2]}, body, 3); },
      f64({}, {121}));
}
TEST(GraphRow, scan_trajectory) {
  expect_row(
      {kOne}, [](Graph& g, const Values& v) { return g.scan_trajectory(v[0], doubled(), 3); },
      f64({3}, {2, 4, 8}));
}
TEST(GraphRow, if_) {
  const Graph minus = Graph::parse("graph(c: f64[]) {\n  n = neg(c)\n  return n\n}");
  for (const int64_t flag : {0, 1}) {
    expect_row(
        {flags({}, {flag}), f64({}, {3})},
        [&](Graph& g, const Values& v) { return g.if_(v[0], {v[1]}, doubled(), minus); },
        f64({}, {flag ? 6.0 : -3.0}));
  }
}
TEST(GraphRow, while_) {
  const Graph below =
      Graph::parse("graph(c: f64[], limit: f64[]) {\n  b = compare(c, limit, kind=lt)\n  return b\n}");
  const Graph step = Graph::parse("graph(c: f64[], limit: f64[]) {\n  n = add(c, c)\n  return n\n}");
  expect_row(
      {kOne, f64({}, {100})},
      [&](Graph& g, const Values& v) { return g.while_({v[0]}, {v[1]}, below, step); }, f64({}, {128}));
}

struct Negate {
  static constexpr std::string_view name = "rows_negate", summary = "", doc = "y = -x", operands = "x";
  using Attrs = ir::NoAttrs;
  static Shapes infer(ir::Infer& c, Attrs&) { return {c.in(0)}; }
  static Literals reference(const ir::Eval& c, const Attrs&) {
    std::vector<double> v = c.in(0).to_reals();
    for (double& x : v) x = -x;
    return {Literal::reals(c.out(), v)};
  }
};
struct First {
  static constexpr std::string_view name = "rows_first", summary = "", doc = "the first elements of x",
                                    operands = "x";
  struct Attrs {
    Shape out_shape;
    static constexpr auto fields() {
      return std::tuple{ir::field("out_shape", &Attrs::out_shape, "type of the result")};
    }
  };
  static Shapes infer(ir::Infer&, Attrs& a) { return {a.out_shape}; }
  static Literals reference(const ir::Eval& c, const Attrs&) {
    const std::vector<double> v = c.in(0).to_reals();
    return {Literal::reals(c.out(), std::vector<double>(v.begin(), v.begin() + c.out().elements()))};
  }
};
ir::OpTable own_operators() { return ir::OpTable(ops::table()).add<Negate>().add<First>(); }

TEST(GraphRow, custom_op) {
  const ir::OpTable operators = own_operators();
  expect_row(
      {f64({2}, {1, 2})},
      [&](Graph& g, const Values& v) { return g.custom_op("rows_negate", "", {v[0]}, operators); },
      f64({2}, {-1, -2}));
  // Any operator goes by its name, attributes as in a text.
  expect_row(
      {f64({2, 2}, {1, 2, 3, 4})},
      [](Graph& g, const Values& v) { return g.custom_op("reduce", "kind=max, axes=[1]", {v[0]}); },
      f64({2}, {2, 4}));
  Graph g("g");
  EXPECT_EQ(message_of([&] { g.custom_op("rows_negate", "", {}); }), "ops: unknown operator 'rows_negate'");
  EXPECT_EQ(message_of([&] { g.custom_op("rows_negate", "k=2", {}, operators); }),
            "parse: rows_negate has no attribute 'k'; it has none");
}
TEST(GraphRow, custom_op_packed) {
  const ir::OpTable operators = own_operators();
  const Shape two(DType::f64, {2});
  expect_row(
      {f64({3}, {1, 2, 3})},
      [&](Graph& g, const Values& v) { return g.custom_op_packed("rows_first", "", {v[0]}, two, operators); },
      f64({2}, {1, 2}));
  Graph g("g");
  const Value x = g.input("x", Shape(DType::f64, {3}));
  EXPECT_EQ(message_of([&] { g.custom_op_packed("rows_negate", "", {x}, two, operators); }),
            "custom_op_packed: operator 'rows_negate' gives f64[3]; out_shape is f64[2]");
  EXPECT_EQ(g.len(), 1u);
}

// What a program adds goes through every form that a graph has.
TEST(OwnOperators, print_parse_save_and_load) {
  const ir::OpTable operators = own_operators();
  const Graph g =
      Graph::parse("graph(x: f64[3]) { return rows_first(rows_negate(x), out_shape=f64[2]) }", operators);
  EXPECT_TRUE(Graph::parse(g.to_text(), operators) == g);
  EXPECT_TRUE(Graph::from_json(g.to_json(), operators) == g);
  const Scratch scratch;
  g.save(scratch.path("g"));
  EXPECT_TRUE(Graph::load(scratch.path("g"), operators) == g);
  EXPECT_NE(message_of([&] { Graph::load(scratch.path("g")); }).find("unknown operator 'rows_negate'"),
            std::string::npos);
  ir::OpTable again = operators;
  EXPECT_EQ(message_of([&] { again.add<Negate>(); }),
            "ops: the table has an operator 'rows_negate' already; names must be unique");
}
TEST(GraphRow, custom_fn) {
  expect_row(
      {f64({}, {4})}, [](Graph& g, const Values& v) { return g.custom_fn({v[0]}, doubled()); }, f64({}, {8}));
}
TEST(GraphRow, custom_fn_multi) {
  const Graph body = Graph::parse("graph(x: f64[2]) {\n  s = reduce(x)\n  n = neg(x)\n  return s, n\n}");
  const Literals out = run({f64({2}, {1, 2})}, [&](Graph& g, const Values& v) {
    const auto handle = g.custom_fn_multi({v[0]}, body);
    EXPECT_EQ(handle.n_outputs, 2u);
    EXPECT_EQ(cat(handle.sub_shapes), "[f64[], f64[2]]");
    EXPECT_EQ(cat(handle.offsets), "[0, 1]");
    EXPECT_EQ(message_of([&] { handle.output(g, 2); }), "custom_fn_multi: there is no output 2; it has 2");
    return Values{handle.output(g, 0), handle.output(g, 1)};
  });
  expect_close(out[0], f64({}, {3}), 0);
  expect_close(out[1], f64({2}, {-1, -2}), 0);
}

TEST(GraphRow, selective_scan) {
  // One batch row, one channel, one state: S = e^(d a) S + d b x, y = c S.
  const double d0 = 0.5, d1 = 0.25, a = -1, b0 = 2, b1 = 3, c0 = 1, c1 = 4, x0 = 1, x1 = 2;
  const double s0 = d0 * b0 * x0, s1 = std::exp(d1 * a) * s0 + d1 * b1 * x1;
  expect_row(
      {f64({1, 2, 1}, {x0, x1}), f64({1, 2, 1}, {d0, d1}), f64({1, 1}, {a}), f64({1, 2, 1}, {b0, b1}),
       f64({1, 2, 1}, {c0, c1})},
      [](Graph& g, const Values& v) { return g.selective_scan(v[0], v[1], v[2], v[3], v[4], 1); },
      f64({1, 2, 1}, {c0 * s0, c1 * s1}), 1e-12);
}
// One head of width 1: S = e^g S; S += k beta (v - S k); y = S q / sqrt(1).
double delta_step(double& state, double q, double k, double v, double g, double beta) {
  state *= std::exp(g);
  state += beta * k * (v - state * k);
  return state * q;
}
TEST(GraphRow, gated_delta_net) {
  double s = 0;
  const double y0 = delta_step(s, 1, 0.5, 2, -0.1, 0.7), y1 = delta_step(s, 2, 0.25, -1, -0.2, 0.9);
  const Literals out =
      run({f64({1, 2, 1, 1}, {1, 2}), f64({1, 2, 1, 1}, {0.5, 0.25}), f64({1, 2, 1, 1}, {2, -1}),
           f64({1, 2, 1}, {-0.1, -0.2}), f64({1, 2, 1}, {0.7, 0.9})},
          [](Graph& g, const Values& v) { return g.gated_delta_net(v[0], v[1], v[2], v[3], v[4], 1); });
  expect_close(out[0], f64({1, 2, 1, 1}, {y0, y1}), 1e-12);
  expect_close(out[1], f64({1, 1, 1, 1}, {s}), 1e-12);
}
TEST(GraphRow, gated_delta_net_carry) {
  double s = 3;
  const double y = delta_step(s, 1, 0.5, 2, -0.1, 0.7);
  const Literals out = run({f64({1, 1, 1, 1}, {1}), f64({1, 1, 1, 1}, {0.5}), f64({1, 1, 1, 1}, {2}),
                            f64({1, 1, 1}, {-0.1}), f64({1, 1, 1}, {0.7}), f64({1, 1, 1, 1}, {3})},
                           [](Graph& g, const Values& v) {
                             return g.gated_delta_net_carry(v[0], v[1], v[2], v[3], v[4], v[5], 1);
                           });
  expect_close(out[0], f64({1, 1, 1, 1}, {y}), 1e-12);
  expect_close(out[1], f64({1, 1, 1, 1}, {s}), 1e-12);
}

TEST(GraphRow, sample) {
  // Temperature 0 is the argmax; top_k 1 is too, at any temperature.
  const Literal logits = f32({2, 3}, {0, 5, 1, 7, 2, 3});
  expect_row(
      {logits}, [](Graph& g, const Values& v) { return g.sample(v[0], 0, 1, 0, 1); }, i32({2}, {1, 0}));
  expect_row(
      {logits}, [](Graph& g, const Values& v) { return g.sample(v[0], 1, 1, 2, 1); }, i32({2}, {1, 0}));
  // Another dtype where asked for.
  const Literal wide = run({logits}, [](Graph& g, const Values& v) {
    return g.sample(v[0], 0, 1, 0, 1, Shape(DType::i64, {2}));
  })[0];
  EXPECT_EQ(cat(wide), "i64[2]{1, 0}");
  // Draws differ by counter and repeat by seed: over 64 counters of a fair coin both sides come up.
  int heads = 0;
  for (int32_t i = 0; i < 64; ++i) {
    const auto draw = [&] {
      return run({f32({1, 2}, {0, 0}), i32({}, {i})},
                 [](Graph& g, const Values& v) { return g.sample(v[0], 0, 1, 1, 9, {}, v[1]); })[0];
    };
    EXPECT_TRUE(draw() == draw());
    heads += int(draw().integer_at(0));
  }
  EXPECT_GT(heads, 16);
  EXPECT_LT(heads, 48);
  // Without a counter two calls in one graph are two draws.
  const Literals twice = run({Literal::zeros(Shape(DType::f32, {64, 2}))}, [](Graph& g, const Values& v) {
    return Values{g.sample(v[0], 0, 1, 1, 9), g.sample(v[0], 0, 1, 1, 9)};
  });
  EXPECT_FALSE(twice[0] == twice[1]);
}

}  // namespace
}  // namespace rlx
