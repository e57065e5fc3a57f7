// A sum and its norm on the CPU: one step where it wins, the bits of two steps everywhere.
#include <gtest/gtest.h>

#include "rlx/backend/plan.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/report.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using Kernels = std::vector<std::string>;

struct Compiled {
  CompiledGraph program;
  NamedLiterals inputs;
};

Compiled compiled(std::string_view text, const CompileOptions& options) {
  const ir::Graph g = test::graph(text);
  NamedLiterals weights, inputs;
  for (const ir::NodeId id : g.leaves())
    (g.node(id).is<ir::Param>() ? weights : inputs)
        .emplace(ir::leaf_name(g.node(id)), ir::sample_literal(cat(g.node(id).shapes[0]), 3 + id));
  return {compile(g, weights, options), inputs};
}

// Runs with these kernels, and gives bit for bit what comes without fusion.
void expect_kernels(std::string_view text, const Kernels& want) {
  Compiled fused = compiled(text, {.threads = 2}), plain = compiled(text, {.threads = 2, .fuse = false});
  const NamedLiterals got = fused.program.run(fused.inputs);
  Kernels have;
  for (const auto& s : fused.program.plan().steps) have.push_back(s.kernel);
  EXPECT_EQ(have, want) << fused.program.plan().text();
  EXPECT_TRUE(backend::verify_plan(fused.program.plan()).empty());
  for (const auto& [name, value] : plain.program.run(plain.inputs))
    EXPECT_EQ(got.at(name), value) << name << "\n" << text;
}

TEST(ResidualNorm, is_one_step_with_the_bits_of_two) {
  for (const std::string_view norm : {"rms_norm(s)", "rms_norm(s, g)", "rms_norm(s, g, b)", "layer_norm(s)",
                                      "layer_norm(s, g)", "layer_norm(s, g, b, eps=0.1)"}) {
    const std::string head =
        "graph @t(x: f32[3,5,70], r: f32[3,5,70], param g: f32[70], param b: f32[70]) { s = add(x, r) ";
    expect_kernels(cat(head, "y = ", norm, " return y, s }"), {"residual_norm_rows_f32"});
    expect_kernels(cat(head, "y = ", norm, " return y }"), {"residual_norm_rows_f32"});
  }
  expect_kernels("graph @t(x: f32[4,8]) { s = add(x, x) y = rms_norm(s) return y, s }",
                 {"residual_norm_rows_f32"});
}

TEST(ResidualNorm, keeps_an_operand_that_scales_too) {
  for (const std::string_view norm : {"layer_norm(s, a, b)", "layer_norm(s, b, a)", "rms_norm(s, a)"}) {
    expect_kernels(
        cat("graph @t(x: f32[64], r: f32[64]) { a = cumsum(x) b = cumsum(r) s = add(a, b) y = ", norm,
            " z = cumsum(y) t = cumsum(s) return z, t }"),
        {"cumulative_sum", "cumulative_sum", "residual_norm_rows_f32", "cumulative_sum", "cumulative_sum"});
    expect_kernels(cat("graph @t(x: f32[64], r: f32[64]) { a = cumsum(x) b = cumsum(r) s = add(a, b) y = ",
                       norm, " z = cumsum(y) return z }"),
                   {"cumulative_sum", "cumulative_sum", "residual_norm_rows_f32", "cumulative_sum"});
  }
}

// Both results lie where the operands of the sum lay.
TEST(ResidualNorm, of_values_that_nobody_else_reads_is_in_their_places) {
  constexpr std::string_view text = R"(graph @t(x: f32[64,32], r: f32[64,32], param w: f32[32,32]) {
    a = sin(x)
    b = cos(r)
    am = matmul(a, w)
    bm = matmul(b, w)
    s = add(softmax(am, axis=1), softmax(bm, axis=1))
    y = rms_norm(s)
    z = mul(softmax(y, axis=1), s)
    return z
  })";
  Compiled c = compiled(text, {.threads = 1});
  c.program.run(c.inputs);
  const backend::Plan& plan = c.program.plan();
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                                 [](const auto& s) { return s.kernel == "residual_norm_rows_f32"; });
  ASSERT_NE(step, plan.steps.end()) << plan.text();
  std::vector<int> in = {step->in[0].buffer, step->in[1].buffer},
                   out = {step->out[0].buffer, step->out[1].buffer};
  std::sort(in.begin(), in.end());
  std::sort(out.begin(), out.end());
  EXPECT_EQ(in, out) << plan.text();
  expect_kernels(text, {"region", "region", "matmul_gemm", "matmul_gemm", "softmax_rows_f32",
                        "softmax_rows_f32", "residual_norm_rows_f32", "softmax_rows_f32", "region"});
}

TEST(ResidualNorm, stays_two_steps_where_one_would_not_do) {
  // The last operation of a product.
  expect_kernels(R"(graph @t(x: f32[6,8], r: f32[6,8], param w: f32[8,8]) {
    s = add(matmul(r, w), x)
    y = layer_norm(s)
    return y, s
  })",
                 {"matmul_epilogue_f32", "layer_norm_rows_f32"});
  // A vector on all rows; weights that are made of the sum.
  expect_kernels("graph @t(x: f32[6,8], r: f32[8]) { s = add(x, r) y = layer_norm(s) return y, s }",
                 {"region", "layer_norm_rows_f32"});
  expect_kernels("graph @t(x: f32[8], r: f32[8]) { s = add(x, r) y = rms_norm(s, s) return y, s }",
                 {"region", "rms_norm_rows_f32"});
  expect_kernels(
      "graph @t(x: f32[6,8], r: f32[8,6]) { s = add(x, transpose(r, perm=[1,0])) y = layer_norm(s) return y, s }",
      {"copy", "residual_norm_rows_f32"});
}

// In 16 bits the whole of it is a region of rows: the sum is rounded as the graph says, and read from memory once.
TEST(ResidualNorm, of_short_floats_is_one_region) {
  for (const std::string_view type : {"f16", "bf16"}) {
    for (const std::string_view norm : {"rms_norm", "layer_norm"}) {
      Compiled c = compiled(cat("graph @t(x: ", type, "[6,40], r: ", type, "[6,40], param g: ", type,
                                "[40]) { s = add(x, r) y = ", norm, "(s, g) return y, s }"),
                            {.threads = 1});
      c.program.run(c.inputs);
      const backend::Plan& plan = c.program.plan();
      ASSERT_EQ(plan.steps.size(), 1u) << plan.text();
      EXPECT_EQ(plan.steps[0].kernel, "region");
      EXPECT_EQ(plan.steps[0].out.size(), 2u);
    }
  }
  Compiled c = compiled("graph @t(x: f32[6,40], r: f32[6,40]) { s = add(x, r) y = rms_norm(s) return y, s }",
                        {.threads = 1, .precision = PrecisionPolicy::auto_mixed_bf16()});
  c.program.run(c.inputs);
  EXPECT_EQ(c.program.plan().steps.size(), 1u) << c.program.plan().text();
}

TEST(ResidualNorm, is_found_inside_of_a_loop) {
  Compiled c = compiled(R"(graph @t(x: f32[4,8]) {
    y = scan(x, length=3, carries=1, body=graph(c: f32[4,8]) {
      s = add(c, softmax(c, axis=1))
      y = rms_norm(s)
      z = mul(softmax(y, axis=1), s)
      return z
    })
    return y
  })",
                        {.threads = 1});
  c.program.run(c.inputs);
  EXPECT_NE(c.program.plan().text().find("residual_norm_rows_f32"), std::string::npos)
      << c.program.plan().text();
  EXPECT_NE(c.program.report().text().find("joined  y: 2 operators joined"), std::string::npos);
}

}  // namespace
}  // namespace rlx
