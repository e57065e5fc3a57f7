// Graphs of eight bits and convolutions that finish on the way, through the whole compiler.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/backend/plan.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

struct Leaves {
  NamedLiterals inputs, weights, all;
};

// Codes over their whole range, so that sums are large and results differ.
Leaves leaves_of(const ir::Graph& g) {
  Leaves out;
  uint64_t seed = 3;
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    const bool codes = n.shapes[0].dtype() == DType::u8 || n.shapes[0].dtype() == DType::i8;
    Literal value = ir::sample_literal(cat(n.shapes[0]), ++seed);
    if (codes) {
      const auto bytes = value.mutable_bytes();
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte((i * 2654435761u + seed * 977) >> 13);
    }
    (n.is<ir::Param>() ? out.weights : out.inputs).emplace(n.name, value);
    out.all.emplace(n.name, value);
  }
  return out;
}

std::vector<std::string> kernels_of(CompiledGraph& f) {
  std::vector<std::string> out;
  for (const backend::Plan::Step& s : f.plan().steps) out.push_back(s.kernel);
  return out;
}

// What the interpreter makes of the graph as it is written, within `off` of it.
void expect_as_written(std::string_view text, const std::vector<std::string>& kernels, double off) {
  const ir::Graph g = test::graph(text);
  const Leaves leaves = leaves_of(g);
  const NamedLiterals want = ir::interpret(g, leaves.all);
  for (const int threads : {1, 2, 3}) {
    CompiledGraph f = compile(g, leaves.weights, {.threads = threads});
    const NamedLiterals got = f.run(leaves.inputs);
    EXPECT_EQ(kernels_of(f), kernels) << f.plan().text();
    for (const auto& [name, value] : want) {
      bool varied = false;
      ASSERT_EQ(got.at(name).shape(), value.shape());
      for (int64_t i = 0; i < value.elements(); ++i) {
        ASSERT_NEAR(got.at(name).real_at(i), value.real_at(i), off) << name << " at " << i;
        varied = varied || value.real_at(i) != value.real_at(0);
      }
      EXPECT_TRUE(varied);
    }
  }
}

// A stem, a pool and a residual block as exporters write them: no step but the first and the last sees a float.
TEST(Codes, images_stay_bytes_from_rounding_to_rounding) {
  expect_as_written(
      R"(graph @g(image: f32[2,3,18,20], param w: i8[32,3,3,3], param ws: f32[32], param b: f32[32], param v: i8[32,32,3,3],
                                param u: i8[32,32,1,1]) {
    si = constant(value=f32[]{0.03})
    zi = constant(value=f32[]{120.0})
    a = div(image, si)
    a1 = round(a)
    a2 = add(a1, zi)
    a3 = clamp(a2, lo=0.0, hi=255.0)
    a4 = cast(a3, to=u8)
    a5 = cast(a4, to=f32)
    a6 = sub(a5, zi)
    a7 = mul(a6, si)
    wf = cast(w, to=f32)
    wr = reshape(ws, shape=(32,1,1,1))
    wd = mul(wf, wr)
    c = conv2d(a7, wd, stride=[1,2], padding=[1,1])
    br = reshape(b, shape=(1,32,1,1))
    c1 = add(c, br)
    sc = constant(value=f32[]{1.5})
    zc = constant(value=f32[]{3.0})
    c2 = div(c1, sc)
    c3 = round(c2)
    c4 = add(c3, zc)
    c5 = clamp(c4, lo=0.0, hi=255.0)
    c6 = cast(c5, to=u8)
    c7 = cast(c6, to=f32)
    c8 = sub(c7, zc)
    c9 = mul(c8, sc)
    p = pool(c9, kind=max, kernel_size=[2,2])
    p2 = div(p, sc)
    p3 = round(p2)
    p4 = add(p3, zc)
    p5 = clamp(p4, lo=0.0, hi=255.0)
    p6 = cast(p5, to=u8)
    p7 = cast(p6, to=f32)
    p8 = sub(p7, zc)
    p9 = mul(p8, sc)
    vf = cast(v, to=f32)
    sv = constant(value=f32[]{0.01})
    vd = mul(vf, sv)
    d = conv2d(p9, vd, padding=[1,1])
    sd = constant(value=f32[]{20.0})
    zd = constant(value=f32[]{128.0})
    d2 = div(d, sd)
    d3 = round(d2)
    d4 = add(d3, zd)
    d5 = clamp(d4, lo=0.0, hi=255.0)
    d6 = cast(d5, to=u8)
    d7 = cast(d6, to=f32)
    d8 = sub(d7, zd)
    d9 = mul(d8, sd)
    e = add(d9, p9)
    e1 = relu(e)
    e2 = div(e1, sd)
    e3 = round(e2)
    e5 = clamp(e3, lo=0.0, hi=255.0)
    y = cast(e5, to=u8)
    return y
  })",
      {"region", "codes", "codes", "codes", "codes", "copy"}, 1);
}

TEST(Codes, products_of_matrices_and_their_biases) {
  expect_as_written(R"(graph @g(x: u8[4,7,40], param w: i8[50,40], param ws: f32[50], param b: f32[50]) {
    s = constant(value=f32[]{0.05})
    z = constant(value=f32[]{100.0})
    xf = cast(x, to=f32)
    xc = sub(xf, z)
    xd = mul(xc, s)
    wf = cast(w, to=f32)
    wr = reshape(ws, shape=(50,1))
    wd = mul(wf, wr)
    wt = transpose(wd, perm=[1,0])
    m = matmul(xd, wt)
    h = add(m, b)
    sy = constant(value=f32[]{4.0})
    q = div(h, sy)
    r = round(q)
    l = clamp(r, lo=-128.0, hi=127.0)
    y = cast(l, to=i8)
    return y
  })",
                    {"codes"}, 1);
}

TEST(Codes, sums_that_are_not_rounded_are_floats) {
  expect_as_written(R"(graph @g(x: i8[1,32,12,12], param w: i8[40,32,3,3]) {
    xd = dequantize(x, scale=0.01, zero_point=-5)
    wd = dequantize(w, scale=0.002)
    c = conv2d(xd, wd, padding=[1,1])
    y = tanh(c)
    return y
  })",
                    {"codes", "region", "copy"}, 1e-4);
}

TEST(Codes, convolutions_add_biases_and_residuals_and_cut_below_zero) {
  expect_as_written(
      R"(graph @g(x: f32[2,16,14,14], r: f32[2,24,14,14], param w: f32[24,16,3,3], param b: f32[24], param v: f32[24,24,3,3]) {
    c = conv2d(x, w, padding=[1,1])
    br = reshape(b, shape=(1,24,1,1))
    c1 = add(c, br)
    h = relu(c1)
    d = conv2d(h, v, padding=[1,1])
    d1 = add(d, r)
    d2 = add(d1, br)
    y = relu(d2)
    return y
  })",
      {"conv_epilogue_f32", "conv_epilogue_f32"}, 1e-3);
}

}  // namespace
}  // namespace rlx
