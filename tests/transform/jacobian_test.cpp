#include <gtest/gtest.h>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_values;
using test::f64;
using test::graph;

TEST(Jacobian, forward_and_reverse_give_the_same_matrix) {
  const auto g = graph("graph(x: f64[3]) { return mul(cumsum(x, axis=0), x) }");
  const Literals in{f64({3}, {1, 2, 3})};
  // y_i = x_i sum_{j<=i} x_j
  const std::vector<double> want{2, 0, 0, 2, 5, 0, 3, 3, 9};
  const auto forward = ir::interpret(transform::jacfwd(g, "x"), in)[0],
             reverse = ir::interpret(transform::jacrev(g, "x"), in)[0];
  EXPECT_EQ(cat(forward.shape()), "f64[3,3]");
  expect_values(forward, want);
  expect_values(reverse, want);
}

TEST(Jacobian, keeps_the_axes_of_output_and_input) {
  const auto g = graph("graph(x: f64[2,2], w: f64[2,3]) { return matmul(x, w) }");
  const auto j = transform::jacrev(g, "x");
  EXPECT_EQ(cat(j.shape(j.outputs()[0])), "f64[2,3,2,2]");
  const Literals in{f64({2, 2}, {1, 2, 3, 4}), f64({2, 3}, {1, 2, 3, 4, 5, 6})};
  test::expect_close(ir::interpret(j, in), ir::interpret(transform::jacfwd(g, "x"), in), 1e-12);
}

TEST(Jacobian, hessian_of_a_quartic) {
  const auto g = graph("graph(x: f64[2]) { s = mul(x, x) return reduce(mul(s, s)) }");
  expect_values(ir::interpret(transform::hessian(g, "x"), Literals{f64({2}, {1, 2})})[0], {12, 0, 0, 48});
}

TEST(Jacobian, hvp_is_symmetric_on_a_network_with_gelu_and_layer_norm) {
  const auto g = graph(R"(graph(x: f64[3,4], gamma: f64[4], beta: f64[4]) {
    n = layer_norm(x, gamma, beta)
    return reduce(gelu(mul(n, x)))
  })");
  Literals in;
  for (const auto id : g.leaves()) in.push_back(test::random_like(g.node(id).shapes[0], id));
  const auto h = transform::hvp(g, {"x"});
  const auto product = [&](const Literal& v) {
    Literals all = in;
    all.push_back(v);
    return ir::interpret(h, all).back();
  };
  const Literal u = test::random_like(parse_shape("f64[3,4]"), 31),
                v = test::random_like(parse_shape("f64[3,4]"), 32);
  EXPECT_NEAR(test::inner(u, product(v)), test::inner(v, product(u)), 1e-9);
}

TEST(Jacobian, wrong_requests_are_refused) {
  using test::error_of;
  const auto two = graph("graph(x: f64[2]) { return x, sin(x) }");
  EXPECT_EQ(error_of([&] { transform::jacfwd(two, "x"); }),
            "jacfwd: graph 'main' has 2 outputs; it must have one");
  const auto vector = graph("graph(x: f64[2]) { return sin(x) }");
  EXPECT_EQ(error_of([&] { transform::hessian(vector, "x"); }),
            "hessian: the output is f64[2]; it must be a scalar");
}

}  // namespace
}  // namespace rlx
