// The operations that records tell, against those of the products they are made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "rlx/ops/all.h"
#include "tests/support/graphs.h"
#include "tests/support/samples.h"

namespace rlx::ops {
namespace {

Shapes operand_types(const ir::Graph& g, const ir::Node& n) {
  Shapes out;
  for (const ir::Value v : n.inputs) out.push_back(g.shape(v));
  return out;
}

double operations(const ir::Graph& g) {
  const ir::Node& n = g.node(g.outputs()[0].node);
  return ir::cost_of(*n.op, operand_types(g, n), n.shapes, n.attrs.get()).operations;
}

// Of the products inside a composite alone; nothing where a part has a body.
std::optional<double> products(const ir::Graph& g, const ir::Node& n) {
  if (!n.op->is_composite()) {
    if (std::ranges::any_of(n.op->fields,
                            [](const ir::FieldInfo& f) { return f.kind == ir::AttrKind::graph; }))
      return std::nullopt;
    return n.op->traits.contraction
               ? ir::cost_of(*n.op, operand_types(g, n), n.shapes, n.attrs.get()).operations
               : 0;
  }
  ir::Graph parts("parts");
  ir::Values leaves, results;
  for (const Shape& s : operand_types(g, n)) leaves.push_back(parts.input(cat("x", leaves.size()), s));
  for (const ir::Expr& e : n.op->decompose(ir::Lower{parts, leaves, n.shapes}, n.attrs.get()))
    results.push_back(e.value);
  parts.set_outputs(results);
  parts.erase_dead();
  double sum = 0;
  for (const ir::Node* part : parts.nodes()) {
    if (part->op->traits.leaf) continue;
    const std::optional<double> inside = products(parts, *part);
    if (!inside) return std::nullopt;
    sum += *inside;
  }
  return sum;
}

TEST(Cost, of_composites_is_that_of_their_products) {
  std::set<std::string_view> compared;
  for (const auto& [name, op] : ops::table().all()) {
    if (!op->operations || !op->is_composite()) continue;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      const test::SampleCase c = test::make_case(*op, i);
      const ir::Node& n = c.graph.node(c.graph.outputs()[0].node);
      const std::optional<double> want = products(c.graph, n);
      if (!want || *want == 0) continue;
      const double got = operations(c.graph);
      // Padding is counted by convolutions and not by the general one; masks take away up to nine tenths of a small sample.
      EXPECT_LE(got, *want * 2) << op->name << " sample " << i;
      EXPECT_GE(got, *want / 10) << op->name << " sample " << i;
      if (got == *want) compared.insert(op->name);
    }
  }
  for (const char* wanted :
       {"attention", "attention_backward", "conv2d", "conv_transpose2d", "dequant_matmul",
        "fused_matmul_bias_act", "lora_matmul", "q_matmul", "scaled_matmul"})
    EXPECT_TRUE(compared.contains(wanted)) << wanted;
}

TEST(Cost, counts_what_is_multiplied) {
  const auto of = [](std::string_view text) { return operations(test::graph(text)); };
  EXPECT_EQ(
      of(R"(graph @g(x: f32[1,3,224,224], w: f32[64,3,7,7]) { return conv2d(x, w, stride=[2,2], padding=[3,3]) })"),
      2.0 * 64 * 112 * 112 * 3 * 7 * 7);
  EXPECT_EQ(of(R"(graph @g(a: f32[4,5,6], b: f32[6,4,7]) {
    return dot_general(a, b, lhs_contracting=[2], rhs_contracting=[0], lhs_batch=[0], rhs_batch=[1]) })"),
            2.0 * 4 * 5 * 7 * 6);
  // A composite without a formula of its own: its product; the transposes and reshapes around it move bytes.
  EXPECT_GE(of(R"(graph @g(a: f32[40,50], b: f32[50,60]) { return einsum(a, b, equation="ij,jk->ik") })"),
            2.0 * 40 * 50 * 60);
}

TEST(Cost, of_reductions_counts_what_is_read) {
  const auto of = [](std::string_view call) {
    return operations(test::graph(cat("graph @g(x: f32[30,40], p: bool[30,40]) { return ", call, " }")));
  };
  for (const char* call : {"reduce(x, kind=sum)", "reduce(x, kind=max, axes=[1])", "logsumexp(x)",
                           "variance(x)", "argmax(x, axis=0)", "argmin(x)", "any(p)", "all(p, axes=[0])"})
    EXPECT_EQ(of(call), 30.0 * 40) << call;
}

TEST(Cost, of_solvers_transforms_and_scans_follows_their_sizes) {
  const auto of = [](std::string_view text) { return operations(test::graph(text)); };
  EXPECT_EQ(of("graph @g(a: f32[5,30,30]) { return cholesky(a) }"), 5.0 * 30 * 30 * 30 / 3);
  EXPECT_EQ(of("graph @g(a: f32[30,30], b: f32[30,7]) { return dense_solve(a, b) }"),
            30 * (2.0 / 3 * 30 * 30 + 2.0 * 30 * 7));
  EXPECT_EQ(of("graph @g(a: f32[5,30,30], b: f32[5,30,7]) { return triangular_solve(a, b) }"),
            5.0 * 30 * 30 * 7);
  EXPECT_EQ(of("graph @g(a: f32[5,30,30]) { return inverse(a) }"), 2.0 * 5 * 30 * 30 * 30);
  EXPECT_EQ(of("graph @g(x: c64[3,1024]) { return fft(x) }"), 5.0 * 3 * 1024 * 10);
  EXPECT_EQ(of("graph @g(x: f64[3,2048]) { return fft(x) }"), 5.0 * 3 * 1024 * 10);  // parts side by side
  EXPECT_EQ(of(R"(graph @g(x: f32[2,9,4], d: f32[2,9,4], a: f32[4,3], b: f32[2,9,3], c: f32[2,9,3]) {
    return selective_scan(x, d, a, b, c) })"),
            2.0 * 9 * 4 * (7 * 3 + 1));
}

TEST(Cost, of_attention_counts_the_keys_that_are_seen) {
  const auto of = [](const std::string& mask) {
    return operations(test::graph(cat(R"(graph @g(q: f32[2,64,4,16], k: f32[2,64,4,16], v: f32[2,64,4,16]) {
      y:2 = attention(q, k, v, num_heads=4, layout=bshd)",
                                      mask, R"()
      return y
    })")));
  };
  const double all = 4.0 * 2 * 4 * 64 * 64 * 16;
  EXPECT_EQ(of(""), all);
  EXPECT_EQ(of(", mask_kind=causal"), all * (64 + 1) / 2 / 64);
  EXPECT_EQ(of(", mask_kind=sliding_window, window=7"), all * 8 / 64);
}

}  // namespace
}  // namespace rlx::ops
