// Products with packed weights run on the packed form, whether the weights are fixed or come with each run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "rlx/backend/plan.h"
#include "rlx/ir/sample.h"
#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "tests/models/session.h"
#include "tests/support/compare.h"
#include "tests/support/data.h"

namespace rlx::test {
namespace {

std::map<std::string, int> kernels_of(const backend::Plan& plan) {
  std::map<std::string, int> out;
  for (const backend::Plan::Step& s : plan.steps) ++out[s.kernel];
  return out;
}

TEST(Packed, weights_of_a_model_are_never_decoded_in_a_run) {
  RLX_REQUIRE_DATA("gguf");
  const models::Model model = models::open_model(data_path("gguf/llama-Q4_0.gguf"));
  const models::ModelGraph g = model.graph();
  CompiledGraph run = compile(g.graph, g.weights);
  auto kernels = kernels_of(run.plan({{"input_ids", Shape(DType::i32, {1, 4})}}));
  // q, k, v and gate, up are a step each; o, down and the head stand alone.
  EXPECT_EQ(kernels["dequant_matmul_group_f32"], 3 * 2);
  EXPECT_EQ(kernels["dequant_matmul_blocks_f32"], 3 * 2 + 1);
  EXPECT_EQ(kernels["matmul_gemm"], 0);
}

// Weights of several kinds, with rounded and exact activations: each result is that of its product alone, to the bit.
TEST(Packed, products_of_one_input_are_one_step) {
  const std::vector<std::string> schemes{"gguf_q4_0", "gguf_q8_0", "gguf_q4_0", "gguf_q6_k"};
  const auto build = [&](const std::vector<size_t>& which) {
    Graph g("products");
    Tracer t(g);
    const Tensor x = t.input("x", {11, 256});
    ir::Values results;
    for (const size_t i : which) {
      const int64_t bytes = i == 1 ? 8 * 34 : i == 3 ? 210 : 8 * 18;
      const Tensor w = t.param(cat("w", i), {int64_t(20 + 30 * i), bytes}, DType::u8);
      const auto activations = i == 2 ? ops::Activations::exact : ops::Activations::q8;
      results.push_back(dequant_matmul(x, w, {}, {}, {.scheme = schemes[i], .activations = activations}));
    }
    g.set_outputs(results);
    return g;
  };
  NamedLiterals weights;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const int64_t bytes = i == 1 ? 8 * 34 : i == 3 ? 210 : 8 * 18;
    weights.emplace(cat("w", i), ir::sample_literal(cat("u8[", 20 + 30 * i, ",", bytes, "] <60"), i + 2));
  }
  const NamedLiterals in{{"x", ir::sample_literal("f32[11,256]", 1)}};
  CompiledGraph all = compile(build({0, 1, 2, 3}), weights);
  EXPECT_EQ(kernels_of(all.plan())["dequant_matmul_group_f32"], 1);
  EXPECT_EQ(all.plan().steps.size(), 1u);
  const NamedLiterals together = all.run(in);
  for (size_t i = 0; i < schemes.size(); ++i) {
    CompiledGraph one = compile(build({i}), {{cat("w", i), weights.at(cat("w", i))}});
    EXPECT_EQ(kernels_of(one.plan())["dequant_matmul_blocks_f32"], 1);
    const Literal alone = one.run(in).begin()->second, &same = together.at(all.outputs()[i].name);
    EXPECT_TRUE(std::ranges::equal(alone.bytes(), same.bytes())) << schemes[i];
  }
}

TEST(Packed, weights_of_each_run_too) {
  Graph g("products");
  Tracer t(g);
  const Tensor x = t.input("x", {3, 64}), w = t.input("w", {5, 36}, DType::u8);
  const Tensor experts = t.input("experts", {3}, DType::i32), e = t.input("e", {2, 5, 36}, DType::u8);
  g.set_outputs({dequant_matmul(x, w, {}, {}, {.scheme = "gguf_q4_0"}),
                 dequant_grouped_matmul(x, e, experts, {.scheme = "gguf_q4_0", .num_experts = 2})});
  const NamedLiterals in{{"x", ir::sample_literal("f32[3,64]", 1)},
                         {"w", ir::sample_literal("u8[5,36] <60", 2)},
                         {"experts", Literal::of<int32_t>({3}, {1, 0, 1})},
                         {"e", ir::sample_literal("u8[2,5,36] <60", 3)}};
  const NamedLiterals want = g.interpret(in);
  CompiledGraph run = compile(g);
  for (const auto& [name, value] : run.run(in)) expect_close(value, want.at(name), 1e-5);
  auto kernels = kernels_of(run.plan());
  EXPECT_EQ(kernels["dequant_matmul_blocks_f32"], 1);
  EXPECT_EQ(kernels["dequant_grouped_matmul_blocks_f32"], 1);
  for (const auto& s : run.plan().steps)
    EXPECT_NE(s.note.find("blocks packed in each run"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
