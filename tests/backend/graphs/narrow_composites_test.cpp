// Composite operators in f16 and bf16 that the CPU runs by their parts: rounded once, as their reference rules do it.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ir/interpreter.h"
#include "rlx/passes/legalise.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"
#include "tests/support/samples.h"

namespace rlx::backend {
namespace {

// The largest difference in steps of the type at the wanted number.
double steps_apart(const Literal& got, const Literal& want) {
  const std::vector<double> a = got.to_reals(), b = want.to_reals();
  const double step = want.dtype() == DType::f16 ? 0x1p-10 : 0x1p-7;
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double apart = std::abs(a[i] - b[i]) / (step * std::exp2(std::ilogb(b[i])));
    out = std::isfinite(apart) ? std::max(out, apart) : HUGE_VAL;
  }
  return out;
}

void expect_one_rounding(std::string_view text) {
  for (const DType t : {DType::f16, DType::bf16}) {
    const ir::Graph g = test::retype(test::graph(text), t);
    SCOPED_TRACE(cat(g));
    Literals leaves;
    for (const ir::NodeId id : g.leaves())
      leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 3 + leaves.size()));
    const ir::Graph parts = passes::legalise(g, cpu::device()).graph;
    EXPECT_GT(parts.len(), g.len()) << "it has a kernel and tests nothing here";
    const Literals got = test::run_on(cpu::device(), parts, leaves), want = ir::interpret(g, leaves);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(steps_apart(got[i], want[i]), 1.0) << cat(parts);
  }
}

TEST(NarrowComposites, round_their_result_and_nothing_before) {
  expect_one_rounding("graph @g(x: f32[7,40]) { y = softmax(x, axis=1) return y }");
  expect_one_rounding("graph @g(x: f32[40,7]) { y = log_softmax(x, axis=0) return y }");
  expect_one_rounding("graph @g(x: f32[7,40]) { y = variance(x, axes=[1]) return y }");
  expect_one_rounding("graph @g(x: f32[7,40]) { y = fused_swiglu(x) return y }");
  expect_one_rounding(
      "graph @g(x: f32[7,40], d: f32[7,40]) { y = activation_backward(x, d, kind=gelu) return y }");
  expect_one_rounding(
      "graph @g(x: f32[7,40], r: f32[7,40], w: f32[40], b: f32[40]) { y:2 = fused_residual_ln(x, r, w, b) return y#0 }");
}

TEST(NarrowComposites, hold_the_spread_of_numbers_far_from_zero) {
  const auto away = [](std::string_view call) {
    return cat("graph @g(x: f32[5,64]) { k = full(shape=f32[], value=100) z = add(x, k) y = ", call,
               " return y }");
  };
  expect_one_rounding(away("variance(z, axes=[1])"));
  expect_one_rounding(away("log_softmax(z, axis=1)"));
}

TEST(NarrowComposites, leave_products_and_their_weights_in_16_bits) {
  const ir::Graph g = test::graph(
      "graph @g(x: bf16[4,8], w: bf16[8,6], b: bf16[6]) { y = fused_matmul_bias_act(x, w, b) return y }");
  const ir::Graph parts = passes::legalise(g, cpu::device()).graph;
  EXPECT_GT(parts.len(), g.len());
  for (const ir::Node* n : parts.nodes()) EXPECT_EQ(n->shapes[0].dtype(), DType::bf16) << n->op->name;
}

}  // namespace
}  // namespace rlx::backend
