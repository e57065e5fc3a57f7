// Loops over rows that do not know of each other: shared out over threads, with the bits of one thread.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/backend/control/rows.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/passes/fuse.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"

namespace rlx::backend {
namespace {

using test::graph;

constexpr std::string_view kCut = "threads of";

std::string note_of_scan(const ir::Graph& g, int threads) {
  const auto program = Builder(cpu::device(), threads).build(g);
  for (const Plan::Step& s : program->plan().steps) {
    if (s.op == "scan") return s.note;
  }
  return "no scan";
}

// One to three threads give the same bits, with operators as they are and fused, with weights packed and as they come.
void expect_the_same_bits(const ir::Graph& g, bool cut) {
  SCOPED_TRACE(cat(g));
  const Literals leaves = test::sample_leaves(g);
  for (const ir::Graph& form : {g, passes::fuse(g, cpu::device()).graph}) {
    EXPECT_EQ(note_of_scan(form, 2).find(kCut) != std::string::npos, cut) << note_of_scan(form, 2);
    const std::vector<bool> fixed(leaves.size(), true);
    const Literals want = test::run_on(cpu::device(), form, leaves);
    for (const int threads : {2, 3}) {
      test::expect_close(test::run_on(cpu::device(), form, leaves, {.threads = threads}), want, 0);
      test::expect_close(test::run_on(cpu::device(), form, leaves, {.threads = threads, .fixed = fixed}),
                         want, 0);
    }
  }
}

TEST(RowLoops, cells_with_gates) {
  expect_the_same_bits(graph(R"(graph @lstm(h: f32[35,20], c: f32[35,20], u: f32[20,80], p: f32[7,35,80]) {
    r:3 = scan(h, c, u, p, body=graph @cell(h: f32[35,20], c: f32[35,20], u: f32[20,80], p: f32[35,80]) {
      g = add(matmul(h, u), p)
      i = sigmoid(narrow(g, axis=1, start=0, len=20))
      f = sigmoid(narrow(g, axis=1, start=20, len=20))
      z = tanh(narrow(g, axis=1, start=40, len=20))
      o = sigmoid(narrow(g, axis=1, start=60, len=20))
      n = add(mul(f, c), mul(i, z))
      y = mul(o, tanh(n))
      return y, n, y
    }, length=7, carries=2, consts=1)
    return r, r#1, r#2
  })"),
                       true);
}

TEST(RowLoops, backwards_with_numbers_of_each_row_and_of_each_step) {
  expect_the_same_bits(
      graph(R"(graph @g(h: f32[32,24], u: f32[24,24], mask: f32[32,1], bias: f32[24], dt: f32[8]) {
    r:2 = scan(h, u, mask, bias, dt,
               body=graph @step(h: f32[32,24], u: f32[24,24], m: f32[32,1], b: f32[24], dt: f32[]) {
      one = full(shape=f32[32,24], value=1)
      s = mul(tanh(add(matmul(h, u), b)), m)
      y = add(mul(h, sub(one, dt)), mul(s, dt))
      return y, reduce(y, axes=[1])
    }, length=8, carries=1, consts=3, reverse=true)
    return r, r#1
  })"),
      true);
}

TEST(RowLoops, through_norms_views_and_products_of_each_row) {
  expect_the_same_bits(graph(R"(graph @g(h: f32[48,4,6], q: f32[6,6], gamma: f32[6], x: f32[9,48,24]) {
    r = scan(h, q, gamma, x, body=graph @step(h: f32[48,4,6], q: f32[6,6], gamma: f32[6], x: f32[48,24]) {
      n = layer_norm(h, gamma)
      s = softmax(matmul(matmul(n, q), transpose(n, perm=[0,2,1])), axis=-1)
      y = concat(narrow(matmul(s, n), axis=2, start=0, len=2), narrow(n, axis=2, start=2, len=4), axis=2)
      return add(y, reshape(x, shape=(48,4,6)))
    }, length=9, carries=1, consts=2)
    return r
  })"),
                       true);
}

TEST(RowLoops, are_not_cut_where_rows_meet) {
  for (const char* next : {"softmax(add(h, x), axis=0)", "add(h, reduce(x, axes=[0], keep_dim=true))",
                           "add(x, matmul(transpose(h, perm=[1,0]), x))", "add(x, transpose(h, perm=[1,0]))",
                           "flip(add(h, x), axes=[0])"}) {
    expect_the_same_bits(graph(cat(R"(graph @g(h: f32[64,64], x: f32[100,64,64]) {
      r = scan(h, x, body=graph @step(h: f32[64,64], x: f32[64,64]) {
        return )",
                                   next, R"(
      }, length=100, carries=1)
      return r
    })")),
                         false);
  }
}

TEST(RowLoops, of_little_work_or_few_rows_stay_whole) {
  const auto loop = [](int rows, int length) {
    return graph(cat("graph @g(h: f32[", rows, ",64], x: f32[", length, ",", rows,
                     ",64]) {\n  r = scan(h, x, ", "body=graph @step(h: f32[", rows, ",64], x: f32[", rows,
                     ",64]) {\n    return tanh(add(h, x))\n", "  }, length=", length,
                     ", carries=1)\n  return r\n}"));
  };
  expect_the_same_bits(loop(64, 100), true);
  expect_the_same_bits(loop(64, 3), false);
  expect_the_same_bits(loop(7, 1000), false);
}

TEST(RowLoops, a_cut_body_has_the_types_of_its_rows) {
  const ir::Graph g = graph(R"(graph @step(h: f32[8,4], u: f32[4,4], b: f32[8,1]) {
    return add(matmul(h, u), b)
  })");
  const RowCut unknown = cut_rows(g, {0, kNoRows, kNoRows}, 8, 3);
  EXPECT_FALSE(unknown.body);
  EXPECT_EQ(unknown.uncut_leaf, 2);
  const RowCut cut = cut_rows(g, {0, kNoRows, 0}, 8, 3);
  ASSERT_TRUE(cut.body);
  EXPECT_EQ(cut.output_axes, std::vector<int>{0});
  EXPECT_EQ(cat(cut.body->shape(cut.body->outputs()[0])), "f32[3,4]");
  EXPECT_FALSE(cut_rows(g, {1, 0, kNoRows}, 4, 2).body) << "the inner axis of a product";
}

}  // namespace
}  // namespace rlx::backend
