#include <gtest/gtest.h>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::graph;

const char* kNetwork = R"(graph(x: f64[3,4], param w: f64[4,5], param u: f64[5,2], ids: i32[2]) {
  h = gelu(matmul(x, w))
  y = softmax(matmul(h, u), axis=1)
  r = gather(y, ids, axis=0)
  return y, reduce(mul(r, r)), ids
})";

Literals leaves_of(const ir::Graph& g) {
  Literals out;
  for (const auto id : g.leaves()) {
    const Shape& s = g.node(id).shapes[0];
    out.push_back(is_integer(s.dtype()) ? test::i32({2}, {2, 0}) : test::random_like(s, id + 3));
  }
  return out;
}

// Tangents of two directions through both ways of asking for them.
void expect_jvp(const ir::Graph& g, const Literals& leaves, const std::vector<std::string>& wrt) {
  const auto pushed = transform::jvp(g, wrt);
  const auto parts = transform::linearize(g, wrt);
  for (const auto& e : parts.forward.verify()) ADD_FAILURE() << cat(e);
  for (const auto& e : parts.linear.verify()) ADD_FAILURE() << cat(e);
  const size_t outputs = g.outputs().size();
  const Literals values = ir::interpret(parts.forward, leaves);
  ASSERT_EQ(values.size(), outputs + parts.residuals.size());
  for (uint64_t direction = 0; direction < 2; ++direction) {
    Literals all = leaves, linear(values.begin() + long(outputs), values.end());
    for (const std::string& name : wrt) {
      const Literal v = test::random_like(g.node(*g.find_leaf(name)).shapes[0], 50 + direction);
      all.push_back(v);
      linear.push_back(v);
    }
    const Literals want = ir::interpret(pushed, all);
    for (size_t i = 0; i < outputs; ++i) EXPECT_TRUE(values[i] == want[i]) << i;
    test::expect_close(ir::interpret(parts.linear, linear),
                       Literals(want.begin() + long(outputs), want.end()), 1e-13);
  }
}

TEST(Linearize, gives_the_outputs_and_tangents_of_jvp) {
  const auto g = graph(kNetwork);
  expect_jvp(g, leaves_of(g), {"x", "w", "u"});
  expect_jvp(g, leaves_of(g), {"u"});
}

TEST(Linearize, the_linear_part_runs_no_operator_of_the_forward_part) {
  const auto g = graph(kNetwork);
  const auto parts = transform::linearize(g, {"x", "w"});
  for (const ir::Node* n : parts.linear.nodes()) {
    for (const char* op : {"gelu", "erf", "exp", "softmax", "tanh"}) EXPECT_NE(n->op->name, op);
  }
  // x w, h u; dx w, x dw, dh u: no product of the forward part is in the linear one.
  const auto count = [](const ir::Graph& in) {
    int products = 0;
    for (const ir::Node* n : in.nodes()) products += n->op->name == "matmul";
    return products;
  };
  EXPECT_EQ(count(parts.forward), 2);
  EXPECT_EQ(count(parts.linear), 3);
}

TEST(Linearize, the_linear_part_is_linear) {
  const auto g = graph("graph(x: f64[4]) { return tanh(mul(x, exp(x))) }");
  const auto parts = transform::linearize(g, {"x"});
  const Literals values = ir::interpret(parts.forward, Literals{test::random_like(parse_shape("f64[4]"), 1)});
  const auto apply = [&](const Literal& v) {
    Literals in(values.begin() + 1, values.end());
    in.push_back(v);
    return ir::interpret(parts.linear, in)[0];
  };
  const Literal a = test::random_like(parse_shape("f64[4]"), 2),
                b = test::random_like(parse_shape("f64[4]"), 3);
  test::expect_close(apply(test::moved(a, b, 3)), test::moved(apply(a), apply(b), 3), 1e-13);
  test::expect_close(apply(Literal::zeros(a.shape())), Literal::zeros(a.shape()), 0);
}

TEST(Linearize, goes_through_loops_and_branches_and_outputs_without_tangents) {
  const auto g = graph(R"(graph(p: bool[], x: f64[3], z: f64[2]) {
    y = scan(x, length=3, carries=1, body=graph(c: f64[3]) { return sin(mul(c, c)) })
    b = if(p, y, then_body=graph(a: f64[3]) { return tanh(a) }, else_body=graph(a: f64[3]) { return a })
    return b, z
  })");
  const Literals leaves{Literal::of<bool>({}, {true}), test::f64({3}, {0.2, 0.7, 1.1}),
                        test::f64({2}, {1, 2})};
  expect_jvp(g, leaves, {"x"});
}

TEST(Linearize, a_batch_of_tangents_through_the_linear_part_is_the_jacobian) {
  const auto g = graph("graph(x: f64[3]) { return mul(cumsum(x, axis=0), x) }");
  const auto parts = transform::linearize(g, {"x"});
  const Literals values = ir::interpret(parts.forward, Literals{test::f64({3}, {1, 2, 3})});
  const auto mapped = transform::vmap(parts.linear, {.in_axes = {{"tangent_x", 0}}, .size = 3});
  Literals in(values.begin() + 1, values.end());
  in.push_back(test::f64({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  test::expect_values(ir::interpret(mapped, in)[0], {2, 2, 3, 0, 5, 3, 0, 0, 9});  // columns of the Jacobian
}

TEST(Linearize, wrong_requests_are_refused) {
  const auto g = graph("graph(x: f64[2], i: i32[2]) { return reduce(x) }");
  EXPECT_EQ(test::error_of([&] { transform::linearize(g, {}); }),
            "linearize: no names given; say with respect to which inputs or params");
  EXPECT_EQ(test::error_of([&] { transform::linearize(g, {"i"}); }),
            "jvp: 'i' is i32[2]; only f16, bf16, f32, f64 and c64 inputs have derivatives");
}

}  // namespace
}  // namespace rlx
