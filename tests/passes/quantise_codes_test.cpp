#include "rlx/passes/quantise_codes.h"

#include <gtest/gtest.h>

#include "rlx/ops/control/fused.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;
using test::sample_leaves;

size_t bodies(const ir::Graph& g) {
  size_t n = 0;
  for (const ir::Node* node : g.nodes())
    n += node->is<ops::Fused>() && node->as<ops::Fused>().body->name() == kCodesBody;
  return n;
}

size_t count(const ir::Graph& g, std::string_view op) {
  size_t n = 0;
  for (const ir::Node* node : g.nodes()) n += node->op->name == op;
  return n;
}

// The graph after the pass has that many bodies and gives what the one before gives, codes within one.
ir::Graph expect_codes(std::string_view text, size_t wanted, double tolerance = 1) {
  const ir::Graph g = graph(text);
  ir::Rewritten after = join_codes(g);
  EXPECT_EQ(bodies(after.graph), wanted) << cat(after.graph);
  EXPECT_TRUE(after.graph.verify().empty());
  const Literals in = sample_leaves(g), got = ir::interpret(after.graph, in), want = ir::interpret(g, in);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].shape(), want[i].shape());
    bool varied = false;
    for (int64_t j = 0; j < want[i].elements(); ++j) {
      EXPECT_NEAR(got[i].real_at(j), want[i].real_at(j), tolerance) << i << " at " << j;
      varied = varied || want[i].real_at(j) != want[i].real_at(0);
    }
    EXPECT_TRUE(varied);
  }
  return after.graph;
}

// As ONNX models come in: arithmetic, scales of weights for each channel, a bias of codes.
constexpr std::string_view kArithmetic =
    R"(graph @g(x: u8[2,3,6,5], param w: i8[4,3,3,3], param ws: f32[4], param b: f32[4]) {
  s = constant(value=f32[]{0.02})
  z = constant(value=f32[]{117.0})
  xf = cast(x, to=f32)
  xc = sub(xf, z)
  xd = mul(xc, s)
  wf = cast(w, to=f32)
  wr = reshape(ws, shape=(4,1,1,1))
  wd = mul(wf, wr)
  c = conv2d(xd, wd, stride=[2,1], padding=[1,0,0,1])
  br = reshape(b, shape=(1,4,1,1))
  h = add(c, br)
  r = relu(h)
  sy = constant(value=f32[]{3.0})
  q = div(r, sy)
  k = round(q)
  zy = constant(value=f32[]{9.0})
  m = add(k, zy)
  l = clamp(m, lo=0.0, hi=255.0)
  y = cast(l, to=u8)
  return y
})";

TEST(JoinCodes, convolutions_of_codes_written_as_arithmetic) {
  const ir::Graph after = expect_codes(kArithmetic, 1);
  EXPECT_EQ(count(after, "conv2d"), 0u);
}

TEST(JoinCodes, convolutions_and_products_of_quantize_and_dequantize) {
  expect_codes(R"(graph @g(x: i8[1,4,5,5], param w: i8[6,2,3,3]) {
    xd = dequantize(x, scale=0.05, zero_point=-3)
    wd = dequantize_per_channel(w, axis=0, scales=[0.01,0.02,0.03,0.01,0.02,0.05], zero_points=[0,0,0,0,0,0])
    c = conv2d(xd, wd, padding=[1,1], groups=2)
    y = quantize(c, scale=0.2, zero_point=5)
    return y
  })",
               1);
  expect_codes(R"(graph @g(x: i8[3,16], param w: i8[5,16], b: f32[5]) {
    xd = dequantize(x, scale=0.02, zero_point=3)
    wd = dequantize(w, scale=0.01)
    wt = transpose(wd, perm=[1,0])
    m = matmul(xd, wt)
    h = add(m, b)
    y = quantize(h, scale=0.05, zero_point=-4)
    return y
  })",
               1);
}

// Sums in f64 with one scale for the whole, and weights of u8.
TEST(JoinCodes, products_whose_scales_come_after_the_sum) {
  expect_codes(R"(graph @g(x: u8[2,7,12], param w: u8[12,5], param s: f64[5]) {
    zx = constant(value=f64[]{130.0})
    zw = constant(value=f64[]{128.0})
    xf = cast(x, to=f64)
    xc = sub(xf, zx)
    wf = cast(w, to=f64)
    wc = sub(wf, zw)
    m = matmul(xc, wc)
    c = constant(value=f64[]{0.001})
    t = mul(s, c)
    v = mul(m, t)
    k = round(v)
    z = constant(value=f64[]{128.0})
    a = add(k, z)
    l = clamp(a, lo=0.0, hi=255.0)
    y = cast(l, to=u8)
    return y
  })",
               1);
}

TEST(JoinCodes, results_that_are_not_rounded_are_numbers) {
  const ir::Graph after = expect_codes(R"(graph @g(x: u8[1,3,5,5], param w: i8[4,3,3,3], r: f32[1,4,3,3]) {
    s = constant(value=f32[]{0.02})
    xf = cast(x, to=f32)
    xd = mul(xf, s)
    wd = dequantize(w, scale=0.01)
    c = conv2d(xd, wd)
    y = add(c, r)
    return y
  })",
                                       1, 1e-4);
  EXPECT_EQ(count(after, "conv2d"), 0u);
}

// The maximum of codes is the code of the maximum; nothing is rounded twice, and channels stay last.
TEST(JoinCodes, moved_values_move_their_codes) {
  const ir::Graph after =
      expect_codes(R"(graph @g(x: i8[1,4,9,9], param w: i8[4,4,3,3], param v: i8[8,4,1,1]) {
    xd = dequantize(x, scale=0.05)
    wd = dequantize(w, scale=0.01)
    c = conv2d(xd, wd, padding=[1,1])
    q = quantize(c, scale=0.0005, zero_point=2)
    d = dequantize(q, scale=0.0005, zero_point=2)
    p = pool(d, kind=max, kernel_size=[3,3], stride=[2,2], padding=[1,1])
    pq = quantize(p, scale=0.0005, zero_point=2)
    pd = dequantize(pq, scale=0.0005, zero_point=2)
    vd = dequantize(v, scale=0.02)
    e = conv2d(pd, vd)
    y = quantize(e, scale=0.001)
    return y
  })",
                   3);
  EXPECT_EQ(count(after, "transpose"), 2u) << cat(after);
  EXPECT_EQ(count(after, "quantize") + count(after, "dequantize"), 0u) << cat(after);
}

TEST(JoinCodes, maxima_written_on_codes_keep_channels_last) {
  const ir::Graph after =
      expect_codes(R"(graph @g(x: i8[1,4,9,9], param w: i8[4,4,3,3], param v: i8[8,4,1,1]) {
    xd = dequantize(x, scale=0.05)
    wd = dequantize(w, scale=0.01)
    c = conv2d(xd, wd, padding=[1,1])
    q = quantize(c, scale=0.0005, zero_point=2)
    p = pool(q, kind=max, kernel_size=[2,2])
    pd = dequantize(p, scale=0.0005, zero_point=2)
    vd = dequantize(v, scale=0.02)
    e = conv2d(pd, vd)
    y = quantize(e, scale=0.001)
    return y
  })",
                   3);
  EXPECT_EQ(count(after, "transpose"), 2u) << cat(after);
}

TEST(JoinCodes, sums_of_two_branches_keep_channels_last) {
  const ir::Graph after =
      expect_codes(R"(graph @g(x: i8[1,4,6,6], param w: i8[4,4,3,3], param v: i8[4,4,3,3]) {
    xd = dequantize(x, scale=0.05)
    wd = dequantize(w, scale=0.01)
    c = conv2d(xd, wd, padding=[1,1])
    q = quantize(c, scale=0.0005, zero_point=2)
    d = dequantize(q, scale=0.0005, zero_point=2)
    vd = dequantize(v, scale=0.02)
    e = conv2d(d, vd, padding=[1,1])
    f = quantize(e, scale=0.001)
    h = dequantize(f, scale=0.001)
    a = add(h, d)
    r = relu(a)
    y = quantize(r, scale=0.001, zero_point=-128)
    return y
  })",
                   3, 2);
  EXPECT_EQ(count(after, "transpose"), 2u) << cat(after);
  EXPECT_EQ(count(after, "quantize") + count(after, "dequantize"), 0u) << cat(after);
}

// A scale of its own for each image is none of the weights; sums that may not fit 32 bits stay floats.
TEST(JoinCodes, leaves_what_is_no_product_of_codes) {
  expect_codes(R"(graph @g(x: i8[2,8], w: i8[8,3]) {
    xd = dequantize(x, scale=0.05)
    wd = dequantize(w, scale=0.01)
    y = matmul(xd, wd)
    return y
  })",
               0, 0);
  expect_codes(R"(graph @g(x: i8[2,8], param w: i8[8,3], s: f32[2,1]) {
    xf = cast(x, to=f32)
    xd = mul(xf, s)
    wd = dequantize(w, scale=0.01)
    y = matmul(xd, wd)
    return y
  })",
               0, 0);
  expect_codes("graph @g(x: f32[3,4], param w: f32[4,5]) { y = matmul(x, w) return y }", 0, 0);
}

}  // namespace
}  // namespace rlx::passes
