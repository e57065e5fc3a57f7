// Products with packed weights run on the packed form, whether the weights are fixed or come with each run.
#include <gtest/gtest.h>

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
  EXPECT_EQ(kernels["dequant_matmul_blocks_f32"], 3 * 7 + 1);
  EXPECT_EQ(kernels["matmul_gemm"], 0);
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
  EXPECT_EQ(kernels["dequant_matmul_blocks_now_f32"], 1);
  EXPECT_EQ(kernels["dequant_grouped_matmul_blocks_now_f32"], 1);
}

}  // namespace
}  // namespace rlx::test
