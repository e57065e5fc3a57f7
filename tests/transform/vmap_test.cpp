#include <gtest/gtest.h>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/errors.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::expect_values;
using test::f64;
using test::graph;
using transform::vmap;

TEST(Vmap, in_and_out_axes_are_anywhere) {
  const auto g = graph("graph(x: f64[2,3], w: f64[3]) { return mul(x, w) }");
  const auto mapped = vmap(g, {.in_axes = {{"x", 1}}, .out_axes = {-1}, .size = 4});
  EXPECT_EQ(cat(mapped.shape(mapped.outputs()[0])), "f64[2,3,4]");
  EXPECT_EQ(cat(mapped.node(mapped.leaves()[0]).shapes[0]), "f64[2,4,3]");
}

TEST(Vmap, without_the_number_of_examples_is_refused) {
  const auto g = graph("graph(x: f64[2]) { return sin(x) }");
  EXPECT_EQ(test::message_of([&] { vmap(g, {.in_axes = {{"x", 0}}}); }),
            "vmap: the number of examples is not given; set size to a number or a symbol, Dim::batch()");
}

TEST(Vmap, an_output_that_does_not_depend_on_the_batch_is_copied_or_kept) {
  const auto g = graph("graph(x: f64[2], y: f64[3]) { a = sin(x) b = cos(y) return a, b }");
  const auto copied = vmap(g, {.in_axes = {{"x", 0}}, .size = 5});
  EXPECT_EQ(cat(copied.shape(copied.outputs()[1])), "f64[5,3]");
  const auto kept = vmap(g, {.in_axes = {{"x", 0}}, .out_axes = {0, std::nullopt}, .size = 5});
  EXPECT_EQ(cat(kept.shape(kept.outputs()[1])), "f64[3]");
}

TEST(Vmap, operands_of_different_rank_line_up) {
  const auto g = graph("graph(a: f64[3], b: f64[2,3]) { return add(a, b) }");
  const auto mapped = vmap(g, {.in_axes = {{"a", 0}, {"b", 0}}, .size = 2});
  const Literal a = f64({2, 3}, {1, 2, 3, 4, 5, 6}), b = f64({2, 2, 3}, std::vector<double>(12, 10));
  expect_values(ir::interpret(mapped, Literals{a, b})[0], {11, 12, 13, 11, 12, 13, 14, 15, 16, 14, 15, 16});
}

TEST(Vmap, a_negative_axis_means_the_same_axis) {
  const auto g = graph("graph(x: f64[2,3]) { return softmax(x, axis=-1) }");
  const auto mapped = vmap(g, {.in_axes = {{"x", 0}}, .size = 1});
  const Literal x = test::random_like(parse_shape("f64[2,3]"), 4);
  test::expect_close(ir::interpret(mapped, Literals{x.reshaped({1, 2, 3})})[0].reshaped({2, 3}),
                     ir::interpret(g, Literals{x})[0], 1e-12);
}

TEST(Vmap, nests) {
  const auto g = graph("graph(x: f64[2], y: f64[2]) { return reduce(mul(x, y)) }");
  const auto rows = vmap(g, {.in_axes = {{"x", 0}}, .size = 2});
  const auto all = vmap(rows, {.in_axes = {{"y", 0}}, .size = 3});
  const Literal x = f64({2, 2}, {1, 2, 3, 4}), y = f64({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_values(ir::interpret(all, Literals{x, y})[0], {1, 3, 2, 4, 3, 7});
}

TEST(Vmap, the_batch_may_be_symbolic) {
  const auto g = graph("graph(x: f64[3], w: f64[3,2]) { return matmul(reshape(x, shape=(1, 3)), w) }");
  const auto mapped = vmap(g, {.in_axes = {{"x", 0}}, .size = Dim::batch()});
  EXPECT_EQ(cat(mapped.shape(mapped.outputs()[0])), "f64[batch,1,2]");
  EXPECT_TRUE(mapped.verify().empty());
}

// Summed over the batch, the gradient of the batched function is the sum of the gradients.
TEST(Vmap, commutes_with_grad) {
  const auto g = graph(R"(graph(x: f64[3], w: f64[3,3]) {
    h = tanh(matmul(reshape(x, shape=(1, 3)), w))
    return reduce(mul(h, h))
  })");
  const auto per_example = vmap(transform::grad(g, {"w"}), {.in_axes = {{"x", 0}}, .size = 4});
  const auto whole = transform::grad(vmap(g, {.in_axes = {{"x", 0}}, .size = 4}), {"w"});
  const Literal x = test::random_like(parse_shape("f64[4,3]"), 1),
                w = test::random_like(parse_shape("f64[3,3]"), 2);
  const auto rows = ir::interpret(per_example, Literals{x, w})[0];
  const auto total = ir::interpret(whole, Literals{x, w, f64({4}, {1, 1, 1, 1})})[0];
  for (int64_t i = 0; i < 9; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) sum += rows.real_at(9 * k + i);
    EXPECT_NEAR(sum, total.real_at(i), 1e-12);
  }
}

TEST(Vmap, wrong_requests_are_refused) {
  using test::error_of;
  const auto g = graph("graph(x: f64[2]) { return sin(x) }");
  EXPECT_EQ(error_of([&] { vmap(g, {.in_axes = {{"y", 0}}, .size = 2}); }),
            "vmap: graph 'main' has no input or param 'y'; did you mean 'x'");
  EXPECT_EQ(error_of([&] { vmap(g, {.in_axes = {{"x", 3}}, .size = 2}); }),
            "vmap: axis 3 for 'x' is out of range; with the batch it has rank 2");
  EXPECT_EQ(error_of([&] { vmap(g, {.in_axes = {{"x", 0}}, .out_axes = {std::nullopt}, .size = 2}); }),
            "vmap: output 'output0' depends on the batch; its out axis cannot be none");
  EXPECT_EQ(error_of([&] { vmap(g, {.in_axes = {{"x", 0}}, .out_axes = {0, 0}, .size = 2}); }),
            "vmap: 2 out_axes for 1 outputs");
}

}  // namespace
}  // namespace rlx
