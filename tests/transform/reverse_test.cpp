#include <gtest/gtest.h>

#include <cmath>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/errors.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_values;
using test::f64;
using test::graph;
using transform::grad;
using transform::value_and_grad;

ir::NamedLiterals run(const ir::Graph& g, const ir::NamedLiterals& in) { return ir::interpret(g, in); }

TEST(Reverse, a_scalar_is_seeded_with_one_and_the_loss_comes_first) {
  const auto g = graph("graph(x: f64[2], param w: f64[2]) { loss = reduce(mul(x, w)) return loss }");
  const auto out = value_and_grad(g, {"w", "x"});
  EXPECT_EQ(out.output_names(), (std::vector<std::string>{"loss", "d_w", "d_x"}));
  const auto values = run(out, {{"x", f64({2}, {3, 4})}, {"w", f64({2}, {5, 6})}});
  expect_values(values.at("loss"), {39});
  expect_values(values.at("d_w"), {3, 4});
  expect_values(values.at("d_x"), {5, 6});
}

TEST(Reverse, outputs_beside_the_loss_are_carried_along) {
  const auto g = graph(
      "graph(x: f64[2], param w: f64[2]) { logits = mul(x, w) loss = reduce(logits) n = argmax(logits, axis=0) "
      "return logits=logits, loss=loss, n=n }");
  const auto out = value_and_grad(g, {"w"}, {.loss = "loss"});
  EXPECT_EQ(out.output_names(), (std::vector<std::string>{"logits", "loss", "n", "d_w"}));
  EXPECT_EQ(out.leaves().size(), 2u);  // no cotangents
  const auto values = run(out, {{"x", f64({2}, {3, 4})}, {"w", f64({2}, {5, 6})}});
  expect_values(values.at("logits"), {15, 24});
  expect_values(values.at("d_w"), {3, 4});
  EXPECT_EQ(grad(g, {"w"}, {.loss = "loss"}).output_names(), (std::vector<std::string>{"d_w"}));
}

TEST(Reverse, a_loss_must_be_there_and_a_real_scalar) {
  const auto g = graph("graph @f(x: f64[2]) { y = sin(x) loss = reduce(y) return y=y, loss=loss }");
  EXPECT_EQ(test::message_of([&] { grad(g, {"x"}, {.loss = "los"}); }),
            "grad: graph 'f' has no output 'los'; it has y, loss");
  EXPECT_EQ(test::message_of([&] { grad(g, {"x"}, {.loss = "y"}); }),
            "grad: the loss 'y' is f64[2]; it must be a real scalar");
}

TEST(Reverse, several_outputs_take_their_cotangents_as_inputs) {
  const auto g = graph("graph(x: f64[2]) { a = mul(x, x) b = exp(x) return a, b }");
  const auto out =
      run(grad(g, {"x"}), {{"x", f64({2}, {1, 2})}, {"d_a", f64({2}, {1, 0})}, {"d_b", f64({2}, {0, 1})}});
  expect_values(out.at("d_x"), {2, std::exp(2.0)});
}

TEST(Reverse, gradients_of_parts_are_laid_side_by_side) {
  const auto g = graph(
      "graph(x: f64[2,7]) { a = narrow(x, axis=1, start=1, len=2) b = narrow(x, axis=1, start=3, len=1) "
      "c = narrow(x, axis=1, start=5, len=2) s = add(reduce(mul(a, a)), reduce(exp(b))) return add(s, reduce(c)) }");
  const ir::Graph d = value_and_grad(g, {"x"});
  int joins = 0;
  for (const ir::Node* n : d.nodes()) {
    if (n->op->name != "concat" || n->uses.empty()) continue;
    ++joins;
    EXPECT_EQ(n->inputs.size(), 5u);
  }
  EXPECT_EQ(joins, 1) << cat(d);
  const auto out = run(d, {{"x", f64({2, 7}, {1, 2, 3, 0, 5, 6, 7, 8, 9, 10, 0, 12, 13, 14})}});
  expect_values(out.at("d_x"), {0, 4, 6, 1, 0, 1, 1, 0, 18, 20, 1, 0, 1, 1});
}

TEST(Reverse, gradients_of_parts_that_meet_are_added) {
  const auto g = graph(
      "graph(x: f64[4]) { a = narrow(x, axis=0, start=0, len=3) b = narrow(x, axis=0, start=2, len=2) "
      "return add(reduce(a), reduce(mul(b, b))) }");
  expect_values(run(grad(g, {"x"}), {{"x", f64({4}, {1, 2, 3, 4})}}).at("d_x"), {1, 1, 7, 8});
}

TEST(Reverse, an_input_that_does_not_matter_gets_zeros) {
  const auto g = graph("graph(x: f64[2], y: f64[3]) { return reduce(x) }");
  expect_values(run(grad(g, {"y"}), {{"x", f64({2}, {1, 2})}, {"y", f64({3}, {1, 2, 3})}}).at("d_y"),
                {0, 0, 0});
}

TEST(Reverse, names_survive_the_expansion_of_composites_declared_before_the_parameter) {
  const auto g = graph(R"(graph(x: f64[2,3], param w: f64[3,3]) {
    s = softmax(x, axis=1)
    return reduce(matmul(s, w))
  })");
  test::DerivativeCheck(
      g, {test::random_like(parse_shape("f64[2,3]"), 1), test::random_like(parse_shape("f64[3,3]"), 2)}, true)
      .run();
}

TEST(Reverse, an_interior_reduction_over_several_axes_keeps_the_order_of_nodes) {
  const auto g = graph(R"(graph(x: f64[2,3,4]) {
    m = reduce(x, kind=mean, axes=[0, 2], keep_dim=true)
    return reduce(mul(sub(x, m), x))
  })");
  const auto out = grad(g, {"x"});
  EXPECT_TRUE(out.verify().empty());
  test::DerivativeCheck(g, {test::random_like(parse_shape("f64[2,3,4]"), 3)}, true).run();
}

TEST(Reverse, an_embedding_gradient_takes_indices_of_any_rank) {
  const auto g = graph("graph(t: f64[4,2], ids: i32[2,3]) { return gather(t, ids, axis=0) }");
  const auto out = run(grad(g, {"t"}), {{"t", f64({4, 2}, std::vector<double>(8, 1))},
                                        {"ids", test::i32({2, 3}, {0, 1, 1, 3, 1, 0})},
                                        {"d_output", f64({2, 3, 2}, std::vector<double>(12, 1))}});
  expect_values(out.at("d_t"), {2, 2, 3, 3, 0, 0, 1, 1});
}

// No product per example that is summed afterwards: the rows of all examples go into one.
TEST(Reverse, a_matrix_shared_by_a_batch_gets_its_gradient_from_one_product) {
  const auto g = graph("graph(x: f64[n,2,2], param w: f64[2,1]) { return reduce(matmul(x, w)) }");
  const auto d = grad(g, {"w"});
  for (const ir::Node* n : d.nodes()) {
    if (n->op->name == "matmul") {
      EXPECT_EQ(n->shapes[0], parse_shape("f64[2,1]"));
    }
    EXPECT_NE(n->op->name, "reduce");
  }
  expect_values(
      run(d, {{"x", f64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {"w", f64({2, 1}, {1, 1})}}).at("d_w"),
      {16, 20});
}

TEST(Reverse, ties_in_max_share_the_gradient) {
  const auto g = graph("graph(x: f64[4]) { return reduce(x, kind=max) }");
  expect_values(run(grad(g, {"x"}), {{"x", f64({4}, {2, 5, 5, 1})}}).at("d_x"), {0, 0.5, 0.5, 0});
  const auto two = graph("graph(a: f64[2], b: f64[2]) { return reduce(max(a, b)) }");
  const auto out = run(grad(two, {"a", "b"}), {{"a", f64({2}, {1, 3})}, {"b", f64({2}, {1, 2})}});
  expect_values(out.at("d_a"), {0.5, 1});
  expect_values(out.at("d_b"), {0.5, 0});
}

TEST(Reverse, a_product_is_exact_with_one_and_two_zeros) {
  const auto g = graph("graph(x: f64[3]) { return reduce(x, kind=prod) }");
  expect_values(run(grad(g, {"x"}), {{"x", f64({3}, {2, 0, 5})}}).at("d_x"), {0, 10, 0});
  expect_values(run(grad(g, {"x"}), {{"x", f64({3}, {0, 0, 5})}}).at("d_x"), {0, 0, 0});
  // Second order with a zero: d2(xyz)/dxdz = y = 0, d2/dxdy = z = 5.
  const auto h =
      run(transform::hvp(g, {"x"}), {{"x", f64({3}, {2, 0, 5})}, {"tangent_x", f64({3}, {1, 0, 0})}});
  expect_values(h.at("h_x"), {0, 5, 0});
}

TEST(Reverse, pow_at_zero_base_is_finite) {
  const auto g = graph("graph(a: f64[3], b: f64[3]) { return reduce(pow(a, b)) }");
  const auto out = run(grad(g, {"a", "b"}), {{"a", f64({3}, {0, 0, 2})}, {"b", f64({3}, {2, 0, 3})}});
  expect_values(out.at("d_a"), {0, 0, 12});
  expect_values(out.at("d_b"), {0, 0, 8 * std::log(2.0)});
}

TEST(Reverse, the_untaken_side_of_where_leaks_no_nan_into_the_taken_one) {
  // log(x) is NaN for x < 0; the gradient of the side that is taken must not see it.
  const auto g = graph(R"(graph(x: f64[2], y: f64[2]) {
    positive = compare(x, full(shape=f64[], value=0.0), kind=gt)
    return reduce(where(positive, log(x), y))
  })");
  const auto out = run(grad(g, {"y"}), {{"x", f64({2}, {4, -1})}, {"y", f64({2}, {7, 8})}});
  expect_values(out.at("d_y"), {0, 1});
  // With the operand made safe first, the gradient of x is clean too.
  const auto safe = graph(R"(graph(x: f64[2]) {
    zero = full(shape=f64[], value=0.0)
    one = full(shape=f64[], value=1.0)
    positive = compare(x, zero, kind=gt)
    return reduce(where(positive, log(where(positive, x, one)), zero))
  })");
  expect_values(run(grad(safe, {"x"}), {{"x", f64({2}, {4, -1})}}).at("d_x"), {0.25, 0});
}

TEST(Reverse, gradient_graphs_say_which_node_and_rule_made_them) {
  const auto g = graph("graph(x: f64[2]) { y = sin(x) return reduce(y) }");
  const auto out = grad(g, {"x"});
  bool found = false;
  for (const ir::Node* n : out.nodes()) {
    if (n->origin && n->origin->text().find("vjp of %1 sin") != std::string::npos) found = true;
  }
  EXPECT_TRUE(found) << to_annotated_text(out);
}

TEST(Reverse, second_order_works_on_a_network) {
  const auto g = graph(R"(graph(x: f64[3,4], param w: f64[4,5], param u: f64[5,2]) {
    h = gelu(matmul(x, w))
    return softmax(matmul(h, u), axis=1)
  })");
  Literals leaves;
  for (const auto id : g.leaves()) leaves.push_back(test::random_like(g.node(id).shapes[0], id));
  test::DerivativeCheck(g, leaves, true).run();
}

TEST(Reverse, wrong_requests_are_refused_with_the_way_out) {
  using test::error_of;
  const auto g = graph("graph(x: f64[2], ids: i32[2]) { return reduce(x) }");
  EXPECT_EQ(error_of([&] { grad(g, {"xx"}); }),
            "grad: graph 'main' has no input or param 'xx'; did you mean 'x'");
  EXPECT_EQ(error_of([&] { grad(g, {"ids"}); }),
            "grad: 'ids' is i32[2]; only f16, bf16, f32, f64 and c64 inputs have derivatives");
  EXPECT_EQ(error_of([&] { grad(g, {}); }),
            "grad: no names given; say with respect to which inputs or params");
  const auto ints = graph("graph(x: f64[2]) { return cast(x, to=i32) }");
  EXPECT_EQ(error_of([&] { grad(ints, {"x"}); }),
            "grad: the output 'output0' is i32[2] and has no derivative");
  const auto loop = graph(R"(graph(x: f64[]) {
    y = while(x, carries=1, cond=graph(c: f64[]) { return compare(c, full(shape=f64[], value=9.0), kind=lt) },
              body=graph(c: f64[]) { return mul(c, c) })
    return y
  })");
  EXPECT_EQ(error_of([&] { grad(loop, {"x"}); }),
            "while: reverse mode needs a bound on the number of steps; set max_iterations, or use forward "
            "mode (jvp)");
  const auto out = ir::interpret(transform::jvp(loop, {"x"}), {{"x", f64(2)}, {"tangent_x", f64(1)}});
  expect_values(out.at("d_y"), {32});  // y = ((2^2)^2): derivative 4 x^3
}

TEST(OutputNames, survive_the_expansion_of_the_nodes_they_came_from) {
  using Names = std::vector<std::string>;
  const auto g = graph("graph @f(x: f64[3]) { s = variance(x) return s }");
  EXPECT_EQ(transform::value_and_grad(g, {"x"}).output_names(), (Names{"s", "d_x"}));
  EXPECT_EQ(transform::jvp(g, {"x"}).output_names(), (Names{"s", "d_s"}));
  EXPECT_EQ(transform::hvp(g, {"x"}).output_names(), (Names{"s", "d_x", "h_x"}));
  EXPECT_EQ(transform::prepare_graph_for_ad(g).output_names(), Names{"s"});
  EXPECT_EQ(transform::linearize(g, {"x"}).linear.output_names(), Names{"d_s"});
  EXPECT_EQ(transform::vmap(g, {.in_axes = {{"x", 0}}, .size = 2}).output_names(), Names{"s"});
  const auto loop = graph(R"(graph(x: f64[]) {
    y = while(x, carries=1, max_iterations=3, cond=graph(c: f64[]) { return compare(c, c, kind=lt) },
              body=graph(c: f64[]) { return mul(c, c) })
    z = sin(x)
    return y, z
  })");
  EXPECT_EQ(transform::value_and_grad(loop, {"x"}).output_names(), (Names{"y", "z", "d_x"}));
  // A name that nobody gave is not written down.
  const auto unnamed = transform::prepare_graph_for_ad(graph("graph(x: f64[3]) { return variance(x) }"));
  EXPECT_EQ(to_text(unnamed).find("output0"), std::string::npos);
}

}  // namespace
}  // namespace rlx
