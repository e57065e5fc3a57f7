// Loops and branches with bodies written as functions.
#include "rlx/lang/control.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/lang/derivatives.h"
#include "rlx/lang/operators.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

Literal f64(double v) { return Literal::scalar(DType::f64, v); }
Literal f64(const std::vector<double>& v) { return Literal::of<double>({int64_t(v.size())}, v); }

double value(const Graph& g, const NamedLiterals& at) { return g.interpret(at).begin()->second.real_at(0); }

TEST(Scan, carry_and_slice_are_arguments_in_order) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x0 = t.input("x0", {}, DType::f64), xs = t.input("xs", {3}, DType::f64);
    return scan(x0, {.xs = {xs}}, [](Tensor carry, Tensor x) { return carry - x; });
  });
  EXPECT_TRUE(g.verify().empty());
  EXPECT_EQ(value(g, {{"x0", f64(10)}, {"xs", f64({1, 2, 4})}}), 3);
}

TEST(Scan, constants_length_and_reverse) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x0 = t.input("x0", {}, DType::f64), k = t.input("k", {}, DType::f64),
                 xs = t.input("xs", {3}, DType::f64);
    const Tensor steps = scan(x0, {.consts = {k}, .length = 4}, [](Tensor x, Tensor k) { return x * k; });
    const Tensor back =
        scan(x0, {.xs = {xs}, .reverse = true}, [](Tensor c, Tensor x) { return c * 10 + x; });
    return NamedTensors{{"steps", steps}, {"back", back}};
  });
  const NamedLiterals out = g.interpret({{"x0", f64(1)}, {"k", f64(3)}, {"xs", f64({1, 2, 3})}});
  EXPECT_EQ(out.at("steps").real_at(0), 81);
  EXPECT_EQ(out.at("back").real_at(0), 1321);
}

TEST(Scan, several_carries_and_outputs_of_each_step) {
  const Graph g = trace("fibonacci", [](Tracer& t) {
    const Tensor a = t.zeros({}, DType::f64), b = t.ones({}, DType::f64);
    return scan({a, b}, {.length = 6}, [](Tensor a, Tensor b) { return std::tuple(b, a + b, a); });
  });
  const Literals out = ir::interpret(g, Literals{});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(cat(out[2]), "f64[6]{0.0, 1.0, 1.0, 2.0, 3.0, 5.0}");
  EXPECT_EQ(out[1].real_at(0), 13);
}

TEST(Scan, a_body_may_take_a_list_and_a_tracer) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x = t.input("x", {2}, DType::f64);
    return scan({x}, {.length = 2},
                [](Tracer& t, const Tensors& c) { return c[0] + t.ones({2}, DType::f64); });
  });
  EXPECT_EQ(cat(ir::interpret(g, Literals{f64({1, 2})})[0]), "f64[2]{3.0, 4.0}");
}

TEST(Scan, tensors_from_outside_are_captured_once) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x0 = t.input("x0", {}, DType::f64), rate = t.input("rate", {}, DType::f64),
                 xs = t.input("xs", {2}, DType::f64);
    return NamedTensors{
        {"end", scan(x0, {.xs = {xs}}, [&](Tensor c, Tensor x) { return c + rate * x + rate * rate; })}};
  });
  EXPECT_TRUE(g.verify().empty());
  const NamedLiterals at = {{"x0", f64(1)}, {"rate", f64(2)}, {"xs", f64({3, 5})}};
  EXPECT_EQ(value(g, at), 1 + 2 * 8 + 2 * 4);
  EXPECT_EQ(grad(g, {"rate"}).interpret(at).at("d_rate").real_at(0), 8 + 2 * 2 * 2);
}

TEST(Scan, loops_inside_loops_capture_through_both) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x = t.input("x", {}, DType::f64), k = t.input("k", {}, DType::f64);
    return scan(x, {.length = 3}, [&](Tensor outer) {
      const Tensor twice = outer * 2;
      return scan(outer, {.length = 2}, [&](Tensor inner) { return inner + twice * k; });
    });
  });
  // c -> c + 2 * 2 c k = 5 c for k = 1
  EXPECT_EQ(value(g, {{"x", f64(1)}, {"k", f64(1)}}), 125);
}

TEST(Scan, gradients_with_checkpoints_are_the_same_bits) {
  const auto loss = [](int64_t checkpoints) {
    return trace("ode", [=](Tracer& t) {
      const Tensor z0 = t.input("z0", {3}, DType::f64), w = t.param("w", {3, 3}, DType::f64);
      const Tensor end = scan(z0, {.length = 16, .checkpoints = checkpoints}, [&](Tensor z) {
        return z + z.unsqueeze(0).matmul(w).squeeze(0).tanh() * (1.0 / 16);
      });
      return NamedTensors{{"loss", end.square().sum()}};
    });
  };
  const NamedLiterals at = {{"z0", f64({1, -0.5, 2})},
                            {"w", Literal::of<double>({3, 3}, {.1, .2, -.3, .4, .5, -.6, .7, .8, .9})}};
  const Literal plain = grad(loss(0), {"w"}).interpret(at).at("d_w");
  EXPECT_TRUE(plain == grad(loss(4), {"w"}).interpret(at).at("d_w"));
}

TEST(Scan, a_symbolic_number_of_steps_follows_the_sequence) {
  const Graph g = trace("sum", [](Tracer& t) {
    const Tensor xs = t.input("xs", {Dim::seq()}, DType::f64);
    return scan(t.zeros({}, DType::f64), {.xs = {xs}}, [](Tensor c, Tensor x) { return c + x; });
  });
  EXPECT_EQ(value(g, {{"xs", f64({1, 2, 3, 4})}}), 10);
}

TEST(Scan, refuses_a_body_of_another_number_of_arguments) {
  const auto build = [](auto body) {
    return test::message_of(
        [&] { trace("f", [&](Tracer& t) { return scan(t.input("x", {}), {.length = 2}, body); }); });
  };
  EXPECT_EQ(build([](Tensor a, Tensor b) { return a + b; }), "scan: the body takes 2 tensors; it is given 1");
  EXPECT_EQ(test::message_of([] {
              trace("f", [](Tracer& t) { return scan(t.input("x", {}), {}, [](Tensor c) { return c; }); });
            }),
            "scan: the number of steps is not known; set length, or give sequences in xs");
  EXPECT_EQ(test::message_of([] {
              trace("f", [](Tracer& t) {
                const Tensor x = t.input("x", {});
                return scan(x, {.xs = {x}}, [](Tensor c, Tensor s) { return c + s; });
              });
            }),
            "scan: sequence 0 of xs is f32[]; its first axis must be that of the steps");
}

TEST(Scan, the_six_builders_are_names_of_one_form) {
  Graph body("body");
  const Shape s = Shape::scalar(DType::f64);
  body.set_outputs({body.add(body.input("c", s), body.input("x", s))});
  Graph g("g");
  const Value x = g.input("x", s), xs = g.input("xs", Shape(DType::f64, {3}));
  const Values all = g.scan({x}, {.xs = {xs}}, body);
  g.set_outputs({all[0], g.scan_with_xs(x, {xs}, body, 3), g.scan_all({x}, {}, {xs}, body, 3)[0],
                 g.scan_with_bcasts_and_xs(x, {}, {xs}, body, 3)});
  for (const Literal& y : ir::interpret(g, Literals{f64(1), f64({1, 2, 3})})) EXPECT_EQ(y.real_at(0), 7);
}

TEST(WhileLoop, finds_a_root_and_its_derivatives) {
  const auto root = [](std::optional<int64_t> most) {
    return trace("root", [&](Tracer& t) {
      const Tensor a = t.input("a", {}, DType::f64);
      return NamedTensors{
          {"root", while_loop(
                       a, {.max_iterations = most}, [&](Tensor x) { return (x * x - a).abs() > a * 1e-12; },
                       [&](Tensor x) { return (x + a / x) * 0.5; })}};
    });
  };
  const NamedLiterals at = {{"a", f64(2)}};
  EXPECT_NEAR(value(root({}), at), std::sqrt(2), 1e-12);
  EXPECT_NEAR(grad(root(40), {"a"}).interpret(at).at("d_a").real_at(0), 0.5 / std::sqrt(2), 1e-12);
}

TEST(WhileLoop, bodies_that_capture_different_tensors_agree_on_all_of_them) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x = t.input("x", {}, DType::f64), limit = t.input("limit", {}, DType::f64),
                 step = t.input("step", {}, DType::f64);
    return while_loop(x, {}, [&](Tensor c) { return c < limit; }, [&](Tensor c) { return c + step; });
  });
  EXPECT_EQ(value(g, {{"x", f64(0)}, {"limit", f64(10)}, {"step", f64(4)}}), 12);
}

TEST(IfElse, runs_the_side_that_the_predicate_names) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x = t.input("x", {}, DType::f64), y = t.input("y", {}, DType::f64);
    return NamedTensors{{"z", if_else(x < y, [&] { return x * 2; }, [&] { return y * x; })}};
  });
  EXPECT_TRUE(g.verify().empty());
  EXPECT_EQ(value(g, {{"x", f64(3)}, {"y", f64(5)}}), 6);
  EXPECT_EQ(value(g, {{"x", f64(5)}, {"y", f64(3)}}), 15);
  EXPECT_EQ(grad(g, {"y"}).interpret({{"x", f64(5)}, {"y", f64(3)}}).at("d_y").real_at(0), 5);
}

TEST(IfElse, takes_what_is_captured_as_arguments_too) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x = t.input("x", {}, DType::f64);
    return if_else(
        x > 0, {x, x.exp()}, [](Tensor a, Tensor b) { return a - b; }, [](Tensor, Tensor b) { return b; });
  });
  EXPECT_NEAR(value(g, {{"x", f64(1)}}), 1 - std::exp(1), 1e-15);
  EXPECT_NEAR(value(g, {{"x", f64(-1)}}), std::exp(-1), 1e-15);
}

}  // namespace
}  // namespace rlx
