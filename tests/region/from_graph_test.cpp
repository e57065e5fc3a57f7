#include "rlx/region/from_graph.h"

#include "tests/region/support.h"

namespace rlx::region {
namespace {

using test::parse;
using test::refusal_of;
using test::region_of;

TEST(FromGraph, a_chain_over_dense_tensors_is_one_flat_dimension) {
  EXPECT_EQ(cat(region_of("graph @b(x: f32[2,3,4], y: f32[2,3,4]) { return mul(silu(x), y) }")),
            "region rows [] columns [24]\n"
            "  in 0: f32 [1]\n"
            "  in 1: f32 [1]\n"
            "  out 0: f32 [1]\n"
            "  %0 = load in 0 : f32\n"
            "  %1 = silu %0 : f32\n"
            "  %2 = load in 1 : f32\n"
            "  %3 = mul %1, %2 : f32\n"
            "  store out 0, %3\n");
}

TEST(FromGraph, softmax_takes_three_passes_and_keeps_the_exponentials) {
  const auto text =
      "graph @b(x: f32[2,8,16]) {\n"
      "  m = reduce(x, kind=max, axes=[2], keep_dim=true)\n"
      "  e = exp(sub(x, m))\n"
      "  return div(e, reduce(e, kind=sum, axes=[2], keep_dim=true))\n"
      "}";
  EXPECT_EQ(cat(region_of(text)),
            "region rows [16] columns [16]\n"
            "  in 0: f32 [16, 1]\n"
            "  out 0: f32 [16, 1]\n"
            "  scratch 0: f32\n"
            "  %0 = load in 0 : f32\n"
            "  %1 = reduce_max %0 : f32 per row\n"
            "  barrier\n"
            "  %3 = load in 0 : f32\n"
            "  %4 = sub %3, %1 : f32\n"
            "  %5 = exp %4 : f32\n"
            "  store scratch 0, %5\n"
            "  %7 = reduce_sum %5 : f32 per row\n"
            "  barrier\n"
            "  %9 = load scratch 0 : f32\n"
            "  %10 = div %9, %7 : f32\n"
            "  store out 0, %10\n");
}

TEST(FromGraph, a_mean_is_a_sum_and_a_quotient_and_cheap_values_are_computed_again) {
  const auto text =
      "graph @b(x: f32[4,32], g: f32[32]) {\n"
      "  d = sub(x, reduce(x, kind=mean, axes=[1], keep_dim=true))\n"
      "  v = reduce(mul(d, d), kind=mean, axes=[1], keep_dim=true)\n"
      "  return mul(mul(d, rsqrt(add(v, full(shape=f32[], value=0.5)))), g), reshape(v, shape=(4))\n"
      "}";
  EXPECT_EQ(cat(region_of(text)),
            "region rows [4] columns [32]\n"
            "  in 0: f32 [32, 1]\n"
            "  in 1: f32 [0, 1]\n"
            "  out 0: f32 [32, 1]\n"
            "  out 1: f32 [1, 0]\n"
            "  %0 = constant 0.03125 : f32\n"
            "  %1 = constant 0.5 : f32\n"
            "  %2 = load in 0 : f32\n"
            "  %3 = reduce_sum %2 : f32 per row\n"
            "  barrier\n"
            "  %5 = mul %3, %0 : f32 per row\n"
            "  %6 = load in 0 : f32\n"
            "  %7 = sub %6, %5 : f32\n"
            "  %8 = square %7 : f32\n"
            "  %9 = reduce_sum %8 : f32 per row\n"
            "  barrier\n"
            "  %11 = mul %9, %0 : f32 per row\n"
            "  %12 = add %11, %1 : f32 per row\n"
            "  %13 = rsqrt %12 : f32 per row\n"
            "  store out 1, %11 per row\n"
            "  %15 = load in 0 : f32\n"
            "  %16 = sub %15, %5 : f32\n"
            "  %17 = mul %16, %13 : f32\n"
            "  %18 = load in 1 : f32\n"
            "  %19 = mul %17, %18 : f32\n"
            "  store out 0, %19\n");
}

TEST(FromGraph, a_reduction_over_other_axes_makes_them_the_columns) {
  const Region r = region_of("graph @b(x: f32[5,6,7]) { return reduce(exp(x), kind=sum, axes=[0,2]) }");
  EXPECT_EQ(r.dims, (std::vector<int64_t>{6, 5, 7}));
  EXPECT_EQ(r.row_rank, 1);
  EXPECT_EQ(r.arguments[0].strides, (Strides{7, 42, 1, 0}));
  EXPECT_EQ(r.arguments[1].strides, (Strides{1, 0, 0, 0}));
}

TEST(FromGraph, strided_operands_keep_their_strides) {
  const ir::Graph g =
      parse("graph @b(x: f32[4,6], b: f32[6]) { return add(mul(x, full(shape=f32[], value=0.5)), b) }");
  const Layout layouts[] = {{{1, 4}}, {{1}}};
  const Built built = from_graph(g, layouts);
  ASSERT_TRUE(built) << built.refusal;
  EXPECT_EQ(built.region->dims, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(built.region->arguments[0].strides, (Strides{1, 4, 0, 0}));
  EXPECT_EQ(built.region->arguments[1].strides, (Strides{0, 1, 0, 0}));
}

TEST(FromGraph, narrow_types_round_where_the_graph_does) {
  EXPECT_EQ(cat(region_of("graph @b(x: bf16[8], y: bf16[8]) { return add(mul(x, y), neg(x)) }")),
            "region rows [] columns [8]\n"
            "  in 0: bf16 [1]\n"
            "  in 1: bf16 [1]\n"
            "  out 0: bf16 [1]\n"
            "  %0 = load in 0 : f32\n"
            "  %1 = load in 1 : f32\n"
            "  %2 = mul %0, %1 : f32\n"
            "  %3 = round_bf16 %2 : f32\n"
            "  %4 = neg %0 : f32\n"
            "  %5 = add %3, %4 : f32\n"
            "  store out 0, %5\n");
  EXPECT_EQ(cat(region_of("graph @b(x: i8[8]) { return add(x, x) }")),
            "region rows [] columns [8]\n"
            "  in 0: i8 [1]\n"
            "  out 0: i8 [1]\n"
            "  %0 = constant 24 : i32\n"
            "  %1 = load in 0 : i32\n"
            "  %2 = add %1, %1 : i32\n"
            "  %3 = shift_left %2, %0 : i32\n"
            "  %4 = shift_right %3, %0 : i32\n"
            "  store out 0, %4\n");
}

TEST(FromGraph, refusals_say_why) {
  EXPECT_EQ(refusal_of("graph @b(x: f32[4,4], y: f32[4,4]) { return matmul(x, y) }"),
            "%2 matmul is neither elementwise nor a reduction");
  EXPECT_EQ(refusal_of("graph @b(x: f32[4], y: f64[4]) { return exp(x), exp(y) }"),
            "it computes in f32 and in f64");
  EXPECT_EQ(refusal_of("graph @b(x: c64[4]) { return mul(x, x) }"), "%0 input computes in c64");
  EXPECT_EQ(refusal_of("graph @b(x: f32[n]) { return exp(x) }"), "the size n is not known yet");
  EXPECT_EQ(refusal_of("graph @b(x: f32[4,6]) { return exp(reshape(x, shape=(6,4))) }"),
            "%1 reshape from f32[4,6] to f32[6,4] moves elements between axes");
  EXPECT_EQ(
      refusal_of(
          "graph @b(x: f32[4,6]) { return reduce(x, kind=sum, axes=[0]), reduce(x, kind=sum, axes=[1]) }"),
      "reductions run over different axes");
  EXPECT_EQ(refusal_of("graph @b(x: f32[4,4]) { return add(x, transpose(x, perm=[1,0])) }"),
            "%0 input uses a tensor together with itself along another axis");
  EXPECT_EQ(refusal_of("graph @b(x: f32[4,6], y: f32[6]) { return add(x, y), exp(y) }"),
            "result 1 f32[6] spans a part of the box only");
  EXPECT_EQ(refusal_of("graph @b(x: f32[2]) { return add(x, constant(value=f32[2]{1.0, 2.0})) }"),
            "a constant f32[2] of different values; give it as an operand");
}

}  // namespace
}  // namespace rlx::region
