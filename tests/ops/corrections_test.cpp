// What operators mean where an earlier system computed something else. docs/corrections.md lists every such
// place; tests of the operator's own file prove the others.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/base/philox.h"
#include "rlx/ops/all.h"
#include "tests/support/evaluate.h"
#include "tests/support/graphs.h"
#include "tests/support/refusal.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close, test::graph, test::refusal;

Literal reals(Dims dims, const std::vector<double>& v) { return Literal::of<double>(std::move(dims), v); }

// x[2,3,2] over axes 0 and 2: for each middle index the elements (0,j,0) (0,j,1) (1,j,0) (1,j,1).
TEST(Reduce, over_axes_that_do_not_touch) {
  const std::vector<double> x{1, 2, 3, -4, 5, 6, -7, 8, 9, 10, 0.5, 12};
  const std::vector<std::pair<ReduceOp, std::vector<double>>> wants{{ReduceOp::sum, {4, 18, 23.5}},
                                                                    {ReduceOp::mean, {1, 4.5, 5.875}},
                                                                    {ReduceOp::max, {8, 10, 12}},
                                                                    {ReduceOp::min, {-7, -4, 0.5}},
                                                                    {ReduceOp::prod, {-112, -1080, 180}}};
  for (const auto& [kind, want] : wants) {
    SCOPED_TRACE(choice_names(kind)[size_t(kind)]);
    for (const DType type : {DType::f32, DType::f64}) {
      const auto y = evaluate({Literal::reals(Shape(type, {2, 3, 2}), x)}, [&](const Exprs& t) {
        return Exprs{reduce(t[0], kind, {0, 2}, false), reduce(t[0], kind, {2, 0}, true)};
      });
      expect_close(y[0], Literal::reals(Shape(type, {3}), want), 1e-6);
      expect_close(y[1], Literal::reals(Shape(type, {1, 3, 1}), want), 1e-6);
    }
  }
}

TEST(Reduce, refuses_an_axis_that_is_not_there) {
  EXPECT_EQ(refusal<Reduce>({ReduceOp::sum, {2}}, {"f32[2,3]"}),
            "reduce: axis 2 is out of range for x: f32[2,3]");
}

TEST(Compare, broadcasts_and_gives_one_byte_for_each_element) {
  const auto y = evaluate({reals({2, 1}, {1, 3}), reals({3}, {0, 1, 3})},
                          [](const Exprs& t) { return less(t[0], t[1]); });
  EXPECT_EQ(cat(y[0]), "bool[2,3]{false, false, true, false, false, false}");
  EXPECT_EQ(y[0].bytes().size(), 6u);
}

TEST(Where, broadcasts_its_condition_with_the_sides) {
  const Literal cond = Literal::integers(Shape(DType::bool_, {2, 1}), std::vector<int64_t>{1, 0});
  const auto y = evaluate({cond, reals({3}, {1, 2, 3}), reals({}, {9})},
                          [](const Exprs& t) { return where(t[0], t[1], t[2]); });
  EXPECT_EQ(y[0], reals({2, 3}, {1, 2, 3, 9, 9, 9}));
}

TEST(Round, takes_halves_to_even) {
  const auto y = evaluate({reals({6}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.500001})}, [](const Exprs& t) {
    return Exprs{round(t[0]), activation(Activation::round, t[0])};
  });
  for (const Literal& r : y) EXPECT_EQ(r.to_reals(), (std::vector<double>{0, 2, 2, 0, -2, 3}));
}

TEST(MaxMin, a_nan_on_either_side_is_kept) {
  const auto y = evaluate({reals({3}, {NAN, 1, 2}), reals({3}, {1, NAN, 3})},
                          [](const Exprs& t) { return Exprs{max(t[0], t[1]), min(t[0], t[1])}; });
  expect_close(y[0], reals({3}, {NAN, NAN, 3}), 0);
  expect_close(y[1], reals({3}, {NAN, NAN, 2}), 0);
}

TEST(MixedDtypes, are_refused_and_not_turned_into_the_left_one) {
  EXPECT_EQ(refusal<Add>({}, {"f32[2]", "f64[2]"}),
            "add: dtypes differ, a: f32[2] and b: f64[2]; cast b to f32");
  EXPECT_EQ(refusal<Matmul>({}, {"f32[2,2]", "f64[2,2]"}),
            "matmul: dtypes differ, lhs: f32[2,2] and rhs: f64[2,2]; cast rhs to f32");
  EXPECT_EQ(refusal<Where>({}, {"bool[2]", "f32[2]", "i32[2]"}),
            "where: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
}

// A symbol keeps its static factors: [2, seq, 4] as rows of 4 has 2 seq rows.
TEST(Reshape, the_free_size_of_a_symbolic_tensor_is_the_whole_product) {
  const ir::Graph g = graph("graph(x: f32[2,seq,4]) { return reshape(x, shape=(-1, 4)) }");
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "f32[2*seq,4]");
  const ir::Graph bound = g.bind({{"seq", 3}});
  EXPECT_EQ(cat(bound.shape(bound.outputs()[0])), "f32[6,4]");
}

TEST(Reshape, refuses_another_number_of_elements) {
  EXPECT_EQ(refusal<Reshape>({{4, 2}}, {"f32[2,3]"}),
            "reshape: x: f32[2,3] has 6 elements, shape [4, 2] has 8");
  EXPECT_EQ(refusal<Reshape>({{-1, 4}}, {"f32[2,3]"}),
            "reshape: x: f32[2,3] has 6 elements, not divisible by 4 of shape [-1, 4]");
}

TEST(Concat, adds_symbolic_and_static_sizes) {
  const ir::Graph g =
      graph("graph(a: f32[past,2], b: f32[seq,2], c: f32[1,2]) { return concat(a, b, c, a, axis=0) }");
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "f32[2*past+seq+1,2]");
}

TEST(Concat, refuses_parts_that_differ_elsewhere) {
  EXPECT_EQ(refusal<Concat>({0}, {"f32[2,3]", "f32[2,4]"}),
            "concat: sizes of axis 1 differ, f32[2,3] and operand 1: f32[2,4]; only axis 0 may differ");
}

TEST(Narrow, refuses_a_range_beyond_the_axis) {
  EXPECT_EQ(refusal<Narrow>({1, 2, 2}, {"f32[2,3]"}), "narrow: range 2 + 2 exceeds axis 1 of x: f32[2,3]");
}

TEST(Transpose, refuses_an_axis_named_twice) {
  EXPECT_EQ(refusal<Transpose>({{0, 0}}, {"f32[2,3]"}), "transpose: axis 0 is listed twice for x: f32[2,3]");
}

// Word 0 of Philox under key 0 at this counter is 0x000000e4: its top 24 bits, and so u, are zero.
constexpr int64_t kZeroDraw = 33008474;

TEST(Sample, a_draw_of_zero_passes_over_tokens_without_probability) {
  static_assert(uniform_from_bits(philox_block(0, kZeroDraw, 0)[0]) == 0);
  const auto y = evaluate({Literal::of<float>({1, 3}, {-INFINITY, 0, 0}), Literal::of<int64_t>({}, {0}),
                           Literal::of<int64_t>({}, {kZeroDraw})},
                          [](const Exprs& t) { return sample(t[0], t[1], t[2]); });
  EXPECT_EQ(y[0].integer_at(0), 1);
}

TEST(Sample, seed_zero_is_a_seed_like_any_other) {
  const int n = 64;
  const auto y = evaluate({Literal::zeros(Shape(DType::f32, {n, 2})), Literal::of<int64_t>({}, {0}),
                           Literal::of<int64_t>({}, {5})},
                          [](const Exprs& t) { return sample(t[0], t[1], t[2], 0, 1, 1, 0); })[0];
  for (int r = 0; r < n; ++r) {
    const float u = uniform_from_bits(philox_block(0, 5, uint64_t(r) / 4)[size_t(r) % 4]);
    EXPECT_EQ(y.integer_at(r), u < 0.5f ? 0 : 1) << "row " << r;
  }
}

TEST(TopK, indices_are_integers) {
  const ir::Graph g =
      graph("graph(x: f32[2,5]) { r:2 = top_k(x, k=2) a = argmax(x, axis=1) return r, r#1, a }");
  EXPECT_EQ(g.shape(g.outputs()[1]).dtype(), DType::i32);
  EXPECT_EQ(g.shape(g.outputs()[2]).dtype(), DType::i32);
}

TEST(GaussianSplatPrepare, lists_are_integers_and_not_floats) {
  Graph g;
  Exprs t;
  for (const char* type : {"f32[9,3]", "f32[9,3]", "f32[9,4]", "f32[9]", "f32[9,3]", "f32[9,0,3]", "f32[15]"})
    t.push_back(test::typed(g, type));
  const auto p =
      gaussian_splat_prepare({t[0], t[1], t[2], t[3], t[4], t[5], t[6]}, {.width = 4, .height = 4});
  EXPECT_TRUE(is_integer(p.ids.dtype()));
  EXPECT_TRUE(is_integer(p.ranges.dtype()));
}

TEST(If, takes_captures_of_any_number) {
  const ir::Graph g = graph(R"(graph(p: bool[], a: f64[2], b: f64[2]) {
    r:2 = if(p, a, b, then_body=graph(a: f64[2], b: f64[2]) { return add(a, b), a },
                      else_body=graph(a: f64[2], b: f64[2]) { return mul(a, b), b })
    return r, r#1
  })");
  EXPECT_TRUE(g.verify().empty());
  const Literal a = reals({2}, {2, 3}), b = reals({2}, {5, 7});
  const auto yes = interpret(g, Literals{Literal::of<bool>({}, {true}), a, b}),
             no = interpret(g, Literals{Literal::of<bool>({}, {false}), a, b});
  EXPECT_EQ(yes[0], reals({2}, {7, 10}));
  EXPECT_EQ(yes[1], a);
  EXPECT_EQ(no[0], reals({2}, {10, 21}));
  EXPECT_EQ(no[1], b);
}

TEST(If, runs_only_the_side_taken) {
  const ir::Graph g = graph(R"(graph(p: bool[], a: f64[]) {
    return if(p, a, then_body=graph(a: f64[]) { return sin(a) }, else_body=graph(a: f64[]) { return cos(a) })
  })");
  Interpreter run;
  run.run(g, Literals{Literal::of<bool>({}, {false}), reals({}, {1})});
  EXPECT_EQ(run.stats().runs_of_op.count("sin"), 0u);
  EXPECT_EQ(run.stats().runs_of_op.at("cos"), 1);
}

// Collatz from 27: 111 steps, more than anybody would unroll, and every carry comes back.
TEST(While, runs_without_a_bound_and_returns_every_carry) {
  const ir::Graph g = graph(R"(graph(n: i32[], steps: i32[]) {
    r:2 = while(n, steps, carries=2,
      cond=graph(n: i32[], s: i32[]) { return compare(n, full(shape=i32[], value=1.0), kind=gt) },
      body=graph(n: i32[], s: i32[]) {
        one = full(shape=i32[], value=1.0)
        two = full(shape=i32[], value=2.0)
        three = full(shape=i32[], value=3.0)
        odd = compare(rem(n, two), one, kind=eq)
        return where(odd, add(mul(n, three), one), div(n, two)), add(s, one)
      })
    return r, r#1
  })");
  const auto y = interpret(g, Literals{test::i32({}, {27}), test::i32({}, {0})});
  EXPECT_EQ(y[0].integer_at(0), 1);
  EXPECT_EQ(y[1].integer_at(0), 111);
}

TEST(Scan, has_several_carries_and_outputs_of_its_own) {
  const ir::Graph g = graph(R"(graph(a: f64[], b: f64[], x: f64[3]) {
    r:3 = scan(a, b, x, length=3, carries=2,
      body=graph(a: f64[], b: f64[], x: f64[]) { return b, add(a, b), mul(a, x) })
    return r, r#1, r#2
  })");
  const auto y = interpret(g, Literals{reals({}, {1}), reals({}, {1}), reals({3}, {10, 100, 1000})});
  EXPECT_EQ(y[0], reals({}, {3}));
  EXPECT_EQ(y[1], reals({}, {5}));
  EXPECT_EQ(y[2], reals({3}, {10, 100, 2000}));
}

}  // namespace
}  // namespace rlx::ops
