// Loops over single numbers: the bits of their bodies run by themselves, step after step.
#include <gtest/gtest.h>

#include <random>

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ops/control/scan.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"

namespace rlx::backend {
namespace {

using test::graph;

const ops::Scan::Attrs& scan_of(const ir::Graph& g) {
  for (const ir::Node* n : g.nodes()) {
    if (n->is<ops::Scan>()) return n->as<ops::Scan>();
  }
  throw invalid("no scan in ", g);
}

// The graph is one scan of its leaves, in order, and returns its results.
Literals step_by_step(const ir::Graph& g, const Literals& leaves) {
  const auto& a = scan_of(g);
  const int64_t length = a.length.value();
  const size_t carries = size_t(a.carries), first_slice = carries + size_t(a.consts);
  Literals state(leaves.begin(), leaves.begin() + long(carries)), out;
  for (size_t i = carries; i < g.outputs().size(); ++i)
    out.push_back(Literal::zeros(g.shape(g.outputs()[i])));
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = a.reverse ? length - 1 - step : step;
    Literals in = state;
    in.insert(in.end(), leaves.begin() + long(carries), leaves.begin() + long(first_slice));
    for (size_t i = first_slice; i < leaves.size(); ++i) {
      const size_t bytes = dtype_size(leaves[i].shape().dtype());
      in.push_back(Literal::copy_of(Shape::scalar(leaves[i].shape().dtype()),
                                    leaves[i].bytes().subspan(size_t(t) * bytes, bytes)));
    }
    const Literals results = test::run_on(cpu::device(), *a.body, in);
    state.assign(results.begin(), results.begin() + long(carries));
    for (size_t i = carries; i < results.size(); ++i) {
      const auto from = results[i].bytes();
      std::copy(from.begin(), from.end(), out[i - carries].mutable_bytes().begin() + t * long(from.size()));
    }
  }
  state.insert(state.end(), out.begin(), out.end());
  return state;
}

void expect_the_same_bits(const ir::Graph& g, const Literals& leaves) {
  SCOPED_TRACE(cat(g));
  const auto program = Builder(cpu::device(), 1).build(g);
  ASSERT_EQ(program->plan().steps.at(0).kernel, "scan_numbers") << program->plan().text();
  test::expect_close(test::run_on(cpu::device(), g, leaves), step_by_step(g, leaves), 0);  // any NaN is NaN
}

TEST(ScalarLoops, of_a_pendulum) {
  const ir::Graph g = graph(R"(graph @pendulum(angle: f32[], speed: f32[], step: f32[], gravity: f32[]) {
    r:3 = scan(angle, speed, step, gravity, body=graph @step(a: f32[], s: f32[], dt: f32[], g: f32[]) {
      n = sub(s, mul(mul(sin(a), g), dt))
      b = add(a, mul(n, dt))
      return b, n, sub(mul(n, n), mul(b, b))
    }, length=100, carries=2, consts=2)
    return r, r#1, r#2
  })");
  const auto number = [](float x) { return Literal::of<float>({}, {x}); };
  expect_the_same_bits(g, {number(0.5f), number(-0.1f), number(0.01f), number(9.81f)});
}

TEST(ScalarLoops, of_slices_forward_and_back_with_crossed_carries) {
  for (const char* reverse : {"false", "true"}) {
    const ir::Graph g = graph(cat(R"(graph @cross(a: f64[], b: f64[], x: f64[7], k: i32[7], f: bool[7]) {
      r:4 = scan(a, b, x, k, f, body=graph @step(a: f64[], b: f64[], x: f64[], k: i32[], f: bool[]) {
        s = where(f, add(a, x), mul(a, x))
        return b, s, add(k, k), compare(a, x, kind=lt)
      }, length=7, carries=2, reverse=)",
                                  reverse, ") return r, r#1, r#2, r#3 }"));
    expect_the_same_bits(
        g, {Literal::of<double>({}, {1.5}), Literal::of<double>({}, {-2}), ir::sample_literal("f64[7]", 1),
            ir::sample_literal("i32[7]", 2), ir::sample_literal("bool[7]", 3)});
  }
}

// Every operator of one and two numbers, in every type that a slot holds.
TEST(ScalarLoops, of_every_operator_have_the_bits_of_vectors) {
  const std::string floats[] = {"neg",   "abs",      "sign",    "sqrt", "rsqrt", "exp",
                                "expm1", "log",      "log1p",   "sin",  "cos",   "tan",
                                "atan",  "tanh",     "sigmoid", "erf",  "relu",  "silu",
                                "gelu",  "softplus", "floor",   "ceil", "round", "gelu_approx"};
  const std::string both[] = {"add", "sub", "mul", "div", "max", "min", "rem", "bitwise_and", "shift_left"};
  const std::string compared[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  int tried = 0;
  for (const std::string type : {"f32", "f64", "i32", "i64"}) {
    std::vector<std::string> bodies;
    if (type[0] == 'f') {
      for (const std::string& op : floats) bodies.push_back(op + "(x)");
      bodies.push_back("pow(abs(x), y)");
    }
    for (const std::string& op : both) bodies.push_back(op + "(x, y)");
    for (const std::string& op : compared)
      bodies.push_back("where(compare(x, y, kind=" + op + "), x, mul(y, y))");
    for (const std::string& body : bodies) {
      const std::string text =
          cat("graph @g(c: ", type, "[], x: ", type, "[9], y: ", type,
              "[9]) { r:2 = scan(c, x, y, body=graph @step(c: ", type, "[], x: ", type, "[], y: ", type,
              "[]) { z = ", body, " return z, add(z, c) }, length=9, carries=1) return r, r#1 }");
      ir::Graph g;
      try {
        g = graph(text);
      } catch (const Error&) {
        continue;  // no operator of that name, or not of that type
      }
      ++tried;
      Literal x = ir::sample_literal(type + "[9]", 4), y = ir::sample_literal(type + "[9]", 5);
      if (type == "f32") {
        x.mutable_data<float>()[0] = NAN, x.mutable_data<float>()[1] = -0.0f;
        y.mutable_data<float>()[2] = INFINITY, y.mutable_data<float>()[1] = 0.0f;
      }
      expect_the_same_bits(g, {Literal::zeros(Shape::scalar(x.shape().dtype())), x, y});
    }
  }
  EXPECT_GT(tried, 90);
}

// The order of operations and what goes on in a register depend on the whole body: many bodies, with values of each type read
// by several others, and carries that cross.
TEST(ScalarLoops, of_random_bodies_have_the_bits_of_vectors) {
  std::mt19937 random(3);
  const auto below = [&](size_t n) { return size_t(random() % n); };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::pair<std::string, std::string>> values = {
        {"a", "f32"}, {"b", "f32"}, {"d", "f64"}, {"i", "i32"}, {"x", "f32"}};  // name, type
    const auto of_type = [&](const std::string& type) {
      std::vector<std::string> names;
      for (const auto& [name, t] : values) {
        if (t == type) names.push_back(name);
      }
      return names[below(names.size())];
    };
    std::string body;
    for (int n = 0; n < 14; ++n) {
      const std::string name = cat("v", n), type = values[below(5)].second, one = of_type(type),
                        other = of_type(type),
                        last = values.back().second == type ? values.back().first : one;
      const std::string forms[] = {
          cat("add(", last, ", ", other, ")"),
          cat("sub(", one, ", mul(", last, ", ", other, "))"),
          cat("sub(mul(", one, ", ", other, "), ", last, ")"),
          cat("mul(", last, ", ", last, ")"),
          cat("where(compare(", one, ", ", last, ", kind=lt), ", last, ", ", other, ")"),
          cat("max(", one, ", ", last, ")"),
          type == "i32" ? cat("neg(", last, ")") : cat("sin(", last, ")"),
          cat("cast(", values[below(values.size())].first, ", to=", type, ")")};
      body += cat("    ", name, " = ", forms[below(8)], "\n");
      values.emplace_back(name, type);
    }
    const std::string a = of_type("f32"), b = of_type("f32");
    const ir::Graph g =
        graph(cat("graph @random(a: f32[], b: f32[], d: f64[], i: i32[], x: f32[5]) {\n",
                  "  r:6 = scan(a, b, d, i, x, body=graph @step(a: f32[], b: f32[], d: f64[], i: i32[], "
                  "x: f32[]) {\n",
                  body, "    return ", a, ", ", b, ", ", of_type("f64"), ", ", of_type("i32"), ", v13, ",
                  of_type("f32"), " }, length=5, carries=4)\n  return r, r#1, r#2, r#3, r#4, r#5 }"));
    expect_the_same_bits(
        g, {Literal::of<float>({}, {0.5f}), Literal::of<float>({}, {-1.25f}), Literal::of<double>({}, {0.75}),
            Literal::of<int32_t>({}, {3}), ir::sample_literal("f32[5]", uint64_t(round))});
  }
}

TEST(ScalarLoops, are_not_made_of_vectors_reductions_and_gates) {
  const ir::Graph g = graph(R"(graph @rows(c: f32[4], x: f32[3,4]) {
    r = scan(c, x, body=graph @step(c: f32[4], x: f32[4]) { return add(c, x) }, length=3, carries=1)
    return r
  })");
  EXPECT_EQ(Builder(cpu::device(), 1).build(g)->plan().steps.at(0).kernel, "scan");
}

TEST(ScalarLoops, without_a_step_give_what_they_got) {
  const ir::Graph g = graph(R"(graph @none(c: f32[], x: f32[0]) {
    r:2 = scan(c, x, body=graph @step(c: f32[], x: f32[]) { return add(c, x), c }, length=0, carries=1)
    return r, r#1
  })");
  const Literals got =
      test::run_on(cpu::device(), g, {Literal::of<float>({}, {7}), Literal::zeros(parse_shape("f32[0]"))});
  EXPECT_EQ(got[0], Literal::of<float>({}, {7}));
}

}  // namespace
}  // namespace rlx::backend
