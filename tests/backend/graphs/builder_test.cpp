// What the builder decides: views, copies, sharing of places, donated states, packed weights.
#include "rlx/backend/builder.h"

#include <gtest/gtest.h>

#include <set>

#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/reference.h"
#include "rlx/ir/sample.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"

namespace rlx::backend {
namespace {

using test::graph;

std::vector<std::string> kernels_of(const ir::Graph& g, const Interface& interface = {}) {
  const auto program = Builder(cpu::device(), 1).build(g, interface);
  EXPECT_TRUE(verify_plan(program->plan()).empty()) << program->plan().text();
  std::vector<std::string> out;
  for (const Plan::Step& s : program->plan().steps) out.push_back(s.kernel);
  return out;
}

void expect_as_interpreted(const ir::Graph& g, const test::RunOptions& options = {}) {
  Literals leaves;
  for (const ir::NodeId id : g.leaves())
    leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 11 + leaves.size()));
  test::expect_close(test::run_on(cpu::device(), g, leaves, options), ir::interpret(g, leaves), 2e-5);
}

TEST(Builder, makes_no_step_of_a_view) {
  const ir::Graph g = graph(R"(graph @views(a: f32[4,6], b: f32[5,6]) {
    t = transpose(b, perm=[1,0])
    y = matmul(a, t)
    return y
  })");
  EXPECT_EQ(kernels_of(g), std::vector<std::string>({"matmul_gemm"}));
  expect_as_interpreted(g);
}

// As of the chunks behind the first of a text that has one chunk alone.
TEST(Builder, does_nothing_for_results_without_elements) {
  const ir::Graph g = graph(R"(graph @none(x: f32[2,3], w: f32[3,4], z: f32[1,2,4]) {
    m = matmul(x, w)
    wide = reshape(m, shape=(1,2,4))
    part = narrow(wide, axis=0, start=0, len=0)
    s = exp(part)
    y = concat(z, s, axis=0)
    return y
  })");
  EXPECT_EQ(kernels_of(g), std::vector<std::string>({"matmul_gemm", "nothing", "concat_strided"}));
  expect_as_interpreted(g);
}

TEST(Builder, copies_a_strided_operand_that_no_kernel_takes) {
  const ir::Graph g = graph(R"(graph @strided(x: f32[4,6]) {
    t = transpose(x, perm=[1,0])
    y = softmax(t, axis=1)
    return y
  })");
  EXPECT_EQ(kernels_of(g), std::vector<std::string>({"copy", "softmax_rows_f32"}));
  expect_as_interpreted(g);
}

TEST(Builder, writes_results_over_operands_that_die) {
  const ir::Graph g = graph(R"(graph @chain(a: f32[8,16], b: f32[16,16]) {
    m = matmul(a, b)
    s = softmax(m, axis=1)
    n = softmax(s, axis=1)
    y = matmul(n, b)
    return y
  })");
  const auto program = Builder(cpu::device(), 1).build(g);
  EXPECT_TRUE(verify_plan(program->plan()).empty());
  std::set<int> places;
  for (size_t s = 0; s < 3; ++s) places.insert(program->plan().steps[s].out[0].buffer);
  EXPECT_EQ(places.size(), 1u) << program->plan().text();
  expect_as_interpreted(g);
}

TEST(Builder, keeps_an_operand_that_is_read_again) {
  const ir::Graph g = graph(R"(graph @twice(a: f32[8,16], b: f32[16,16]) {
    m = matmul(a, b)
    s = softmax(m, axis=1)
    t = transpose(m, perm=[1,0])
    y = matmul(s, t)
    return y
  })");
  expect_as_interpreted(g);
}

TEST(Builder, copies_outputs_that_are_inputs_constants_views_or_given_twice) {
  const ir::Graph g = graph(R"(graph @outputs(x: f32[2,3]) {
    c = constant(value=f32[2]{1.0, 2.0})
    t = transpose(x, perm=[1,0])
    s = softmax(x, axis=1)
    r = reshape(s, shape=(3,2))
    return x, c, t, s, s, r
  })");
  expect_as_interpreted(g);
}

TEST(Builder, packs_weights_once_for_steps_that_read_them_alike) {
  const ir::Graph g = graph(R"(graph @packed(x: f32[4,8], param w: f32[8,8]) {
    a = matmul(x, w)
    y = matmul(a, w)
    return y
  })");
  const auto program = Builder(cpu::device(), 1).build(g, {.fixed = {false, true}});
  EXPECT_EQ(program->packings().size(), 1u);
  EXPECT_FALSE(program->reads_leaf(1));
  expect_as_interpreted(g, {.fixed = {false, true}});
}

TEST(Builder, updates_a_donated_state_where_it_lies_or_copies_it_at_the_end) {
  // The old state is read after the new one is made, so that the new one waits in the arena.
  const ir::Graph g = graph(R"(graph @state(x: f32[4], s: f32[4]) {
    n = add(s, x)
    y = mul(s, x)
    return y, n
  })");
  const Literal x = Literal::of<float>({4}, {1, 2, 3, 4}), s = Literal::of<float>({4}, {10, 20, 30, 40});
  const Literals got = test::run_on(cpu::device(), g, {x, s}, {.donated = {{1, 1}}});
  EXPECT_EQ(got[0], Literal::of<float>({4}, {10, 40, 90, 160}));
  EXPECT_EQ(got[1], Literal::of<float>({4}, {11, 22, 33, 44}));
}

TEST(Builder, updates_several_donated_states_in_one_region) {
  const ir::Graph g = graph(R"(graph @adam(x: f32[4], m: f32[4], v: f32[4]) {
    r:3 = fused(x, m, v, body=graph @step(x: f32[4], m: f32[4], v: f32[4]) {
      n = add(m, x)
      w = add(v, mul(x, x))
      p = sub(x, div(n, w))
      return p, n, w
    })
    return r, r#1, r#2
  })");
  const Literals in = {Literal::of<float>({4}, {1, 2, 3, 4}), Literal::of<float>({4}, {10, 20, 30, 40}),
                       Literal::of<float>({4}, {1, 1, 1, 1})};
  const std::vector<Donation> donated = {{0, 0}, {1, 1}, {2, 2}};
  EXPECT_EQ(kernels_of(g, {.donated = donated}), std::vector<std::string>({"region"}));
  test::expect_close(test::run_on(cpu::device(), g, in, {.donated = donated}), ir::interpret(g, in), 1e-6);
}

TEST(Builder, makes_the_parts_of_a_concatenation_in_their_place) {
  const ir::Graph g = graph(R"(graph @join(x: f32[1,16,4], w: f32[4,4]) {
    a = matmul(x, w)
    b = softmax(a, axis=2)
    c = concat(a, b, a, x, axis=1)
    d = concat(c, sin(c), axis=0)
    y = exp(d)
    return y, a
  })");
  expect_as_interpreted(g);
  const ir::Graph plain = graph(R"(graph @join(x: f32[1,16,4], w: f32[4,4]) {
    a = matmul(x, w)
    b = softmax(a, axis=2)
    c = concat(a, b, axis=1)
    return c
  })");
  EXPECT_EQ(kernels_of(plain), std::vector<std::string>({"matmul_gemm", "softmax_rows_f32"}));
  expect_as_interpreted(plain);
}

TEST(Builder, keeps_a_concatenation_whose_parts_are_strided_or_crooked) {
  expect_as_interpreted(graph(R"(graph @columns(x: f32[16,4], w: f32[4,4]) {
    a = matmul(x, w)
    c = concat(a, softmax(a, axis=1), axis=1)
    return c
  })"));
  expect_as_interpreted(graph(R"(graph @odd(x: f32[3,5], w: f32[5,5]) {
    a = matmul(x, w)
    c = concat(softmax(a, axis=1), a, narrow(x, axis=0, start=1, len=2), axis=0)
    return c, a
  })"));
}

// A value that dies as an operand lies at the front of a buffer as large as the whole concatenation.
TEST(Builder, does_not_write_a_part_over_an_operand_of_the_size_of_the_whole) {
  expect_as_interpreted(graph(R"(graph @trap(x: f32[8,16], w: f32[16,16]) {
    z = matmul(x, w)
    h = narrow(z, axis=0, start=0, len=4)
    b = softmax(narrow(z, axis=0, start=4, len=4), axis=1)
    a = tanh(h)
    c = concat(b, a, axis=0)
    return c
  })"));
}

TEST(Builder, swaps_two_donated_states) {
  const ir::Graph g = graph("graph @swap(a: f32[2], b: f32[2]) { return b, a }");
  const Literal a = Literal::of<float>({2}, {1, 2}), b = Literal::of<float>({2}, {3, 4});
  const Literals got = test::run_on(cpu::device(), g, {a, b}, {.donated = {{0, 0}, {1, 1}}});
  EXPECT_EQ(got[0], b);
  EXPECT_EQ(got[1], a);
}

// The results of such a body are its operands, whose places they share.
TEST(Builder, reference_rules_of_bodies_that_swap_their_operands) {
  const ir::Graph g = graph(R"(graph @swap(p: bool[], a: f32[2], b: f32[2]) {
    s = neg(a)
    t = neg(b)
    %9:2 = if(p, s, t, then_body=graph(u: f32[2], v: f32[2]) {
      return v, u
    }, else_body=graph(u: f32[2], v: f32[2]) {
      return u, v
    })
    return %9, %9#1
  })");
  const Literals got = test::run_on(
      ref(), g,
      {Literal::scalar(DType::bool_, 1), Literal::of<float>({2}, {1, 2}), Literal::of<float>({2}, {3, 4})});
  EXPECT_EQ(cat(got[0]), "f32[2]{-3.0, -4.0}");
  EXPECT_EQ(cat(got[1]), "f32[2]{-1.0, -2.0}");
}

TEST(Builder, names_the_node_and_the_line_of_a_step_that_fails) {
  const ir::Graph g = graph(R"(graph @bad(t: f32[3], i: i32[1]) {
    y = gather(t, i, axis=0)
    return y
  })");
  try {
    test::run_on(cpu::device(), g, {Literal::of<float>({3}, {1, 2, 3}), Literal::of<int32_t>({1}, {7})});
    FAIL() << "an index out of range was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user);
    EXPECT_FALSE(e.node().empty()) << e.what();
  }
}

}  // namespace
}  // namespace rlx::backend
