// Adapters of what stands apart from the products of layers: the head, tied or not, rows of the embedding, the gate of a shared expert, and
// weights that are stored whole.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "rlx/llm/adapter.h"
#include "tests/models/folder.h"
#include "tests/models/tiny.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

using test::Scratch;
using Tensors = std::map<std::string, Literal>;

constexpr int64_t kRank = 2;
constexpr double kScale = 4;  // alpha 8 by rank 2

// A PEFT folder with these tensors, "base_model.model." before their names.
Adapter adapter_with(const Scratch& scratch, const Tensors& tensors, const std::string& settings = "") {
  const std::string folder = scratch.path("adapter");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/adapter_config.json")
      << R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8)" << settings << "}";
  std::vector<io::TensorView> views;
  for (const auto& [name, value] : tensors) views.push_back(io::to_view("base_model.model." + name, value));
  io::write_safetensors(folder + "/adapter_model.safetensors", views);
  return Adapter::open(folder);
}

Tensors pair_of(const std::string& module, int64_t in, int64_t out) {
  return {{module + ".lora_A.weight", ir::sample_literal(cat(Shape(DType::f32, {kRank, in})), 5)},
          {module + ".lora_B.weight", ir::sample_literal(cat(Shape(DType::f32, {out, kRank})), 6)}};
}

// W + scale B A.
Literal merged(const Literal& w, const Tensors& pair, const std::string& module) {
  const Literal &a = pair.at(module + ".lora_A.weight"), &b = pair.at(module + ".lora_B.weight");
  const int64_t out = w.shape().dim(0).value(), in = w.shape().dim(1).value();
  std::vector<double> v;
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < kRank; ++r) sum += b.real_at(o * kRank + r) * a.real_at(r * in + i);
      v.push_back(w.real_at(o * in + i) + kScale * sum);
    }
  return Literal::reals(w.shape(), v);
}

Literal logits_of(const std::string& path, const Adapter* adapter = nullptr) {
  const models::Model model = models::open_model(path);
  models::GraphOptions options;
  if (adapter) adapter->check_fits(model), options.linear = adapter->hook();
  models::ModelGraph g = model.graph(options);
  if (adapter)
    for (const auto& [name, value] : adapter->weights()) g.weights.insert_or_assign(name, value);
  const Literal ids = Literal::of<int32_t>({1, 5}, {3, 1, 4, 15, 9});
  return compile(g.graph, g.weights).run({{"input_ids", ids}}).at("logits");
}

// PEFT stores the head itself beside the pair.
TEST(AdapterForms, OfAHead) {
  const Scratch first, second, third;
  test::TinyLlama tiny;
  tiny.config["tie_word_embeddings"] = "false";
  const Literal head = ir::sample_literal("f32[16,8]", 7);
  tiny.tensors.emplace("lm_head.weight", head);
  Tensors tensors = pair_of("lm_head", 8, 16);
  const std::string path = tiny.write(first);
  tiny.tensors.insert_or_assign("lm_head.weight", merged(head, tensors, "lm_head"));
  const Literal want = logits_of(tiny.write(second));
  tensors.emplace("lm_head.base_layer.weight", head);
  const Adapter adapter = adapter_with(third, tensors);
  test::expect_close(logits_of(path, &adapter), want, 1e-5);
}

// The embedding that serves as the head stays as it is where tokens are looked up.
TEST(AdapterForms, OfATiedHead) {
  const Scratch first, second, third;
  test::TinyLlama tiny;
  const Literal table = tiny.tensors.at("model.embed_tokens.weight");
  Tensors tensors = pair_of("lm_head", 8, 16);
  const std::string path = tiny.write(first);
  tiny.config["tie_word_embeddings"] = "false";
  tiny.tensors.emplace("lm_head.weight", merged(table, tensors, "lm_head"));
  const Literal want = logits_of(tiny.write(second));
  tensors.emplace("lm_head.base_layer.weight", table);
  const Adapter adapter = adapter_with(third, tensors);
  test::expect_close(logits_of(path, &adapter), want, 1e-5);
}

TEST(AdapterForms, OfAnotherHeadAreRefused) {
  const Scratch first, second;
  Tensors tensors = pair_of("lm_head", 8, 16);
  tensors.emplace("lm_head.base_layer.weight", ir::sample_literal("f32[16,8]", 8));
  const Adapter adapter = adapter_with(first, tensors);
  const models::Model model = models::open_model(test::TinyLlama().write(second));
  const std::string refusal = test::message_of([&] { adapter.check_fits(model); });
  EXPECT_NE(refusal.find("its copy of 'lm_head.weight' is not the weight of the model"), refusal.npos)
      << refusal;
}

const std::string kTable = "model.embed_tokens.weight", kHead = "lm_head.weight";

// A tied head stays as it is where rows change: it is of the table alone.
TEST(AdapterForms, OfRowsOfAnEmbedding) {
  const Scratch first, second, third;
  test::TinyLlama tiny;
  const Literal table = tiny.tensors.at(kTable);
  const Literal a = ir::sample_literal("f32[2,16]", 8), b = ir::sample_literal("f32[8,2]", 9);
  const std::string path = tiny.write(first);
  std::vector<double> rows;
  for (int64_t v = 0; v < 16; ++v)
    for (int64_t i = 0; i < 8; ++i)
      rows.push_back(table.real_at(v * 8 + i) +
                     kScale * (b.real_at(i * 2) * a.real_at(v) + b.real_at(i * 2 + 1) * a.real_at(16 + v)));
  tiny.config["tie_word_embeddings"] = "false";
  tiny.tensors.emplace(kHead, table);
  tiny.tensors.insert_or_assign(kTable, Literal::reals(table.shape(), rows));
  const Literal want = logits_of(tiny.write(second));
  const Adapter adapter = adapter_with(third, {{"model.embed_tokens.lora_embedding_A", a},
                                               {"model.embed_tokens.lora_embedding_B", b},
                                               {"model.embed_tokens.base_layer.weight", table}});
  test::expect_close(logits_of(path, &adapter), want, 1e-5);
  EXPECT_NE(test::message_of([&] { adapter.write(third.path("again"), "x"); }).find("only pairs of products"),
            std::string::npos);
}

// modules_to_save of PEFT, of a model that ties its head and of one that does not.
TEST(AdapterForms, WithWholeWeights) {
  const Literal rows = ir::sample_literal("f32[16,8]", 11), head = ir::sample_literal("f32[16,8]", 12),
                up = ir::sample_literal("f32[12,8]", 13);
  const std::string up_name = "model.layers.0.mlp.up_proj.weight";
  for (const bool tied : {true, false}) {
    for (const Tensors& saved : {Tensors{{kTable, rows}}, Tensors{{kHead, head}},
                                 Tensors{{kTable, rows}, {kHead, head}}, Tensors{{up_name, up}}}) {
      const Scratch first, second, third;
      test::TinyLlama tiny;
      if (!tied) {
        tiny.config["tie_word_embeddings"] = "false";
        tiny.tensors.emplace(kHead, ir::sample_literal("f32[16,8]", 10));
      }
      const std::string path = tiny.write(first);
      tiny.config["tie_word_embeddings"] = "false";
      tiny.tensors.emplace(kHead, tiny.tensors.at(kTable));
      for (const auto& [name, value] : saved) tiny.tensors.insert_or_assign(name, value);
      const Adapter adapter =
          adapter_with(third, saved, R"(, "modules_to_save": ["embed_tokens", "lm_head", "up_proj"])");
      test::expect_close(logits_of(path, &adapter), logits_of(tiny.write(second)), 1e-5);
    }
  }
}

TEST(AdapterForms, WholeWeightsThatDoNotFitAreRefused) {
  const Scratch first, second, third;
  const models::Model model = models::open_model(test::TinyLlama().write(first));
  const auto refusal = [&](const Scratch& scratch, const std::string& name, const char* shape) {
    const Adapter adapter = adapter_with(scratch, {{name, ir::sample_literal(shape, 11)}},
                                         R"(, "modules_to_save": ["embed_tokens", "norm"])");
    return test::message_of([&] { adapter.check_fits(model); });
  };
  EXPECT_NE(refusal(second, kTable, "f32[18,8]").find("is [18, 8]; the model's is [16, 8]"),
            std::string::npos);
  EXPECT_NE(refusal(third, "model.norm.weight", "f32[8]").find("the model has no weight 'model.norm.weight'"),
            std::string::npos);
}

TEST(AdapterForms, OfTheGateOfASharedExpert) {
  RLX_REQUIRE_DATA("checkpoints/qwen2_moe");
  const Scratch first, second;
  test::Folder f("qwen2_moe");
  const std::string module = "model.layers.1.mlp.shared_expert_gate";
  Literal& gate = f.tensors.at(module + ".weight");
  const Tensors tensors = pair_of(module, gate.shape().dim(1).value(), 1);
  gate = merged(gate, tensors, module);
  const Literal want = logits_of(f.write(first));
  const Adapter adapter = adapter_with(second, tensors);
  test::expect_close(logits_of(f.path, &adapter), want, 1e-4);
}

}  // namespace
}  // namespace rlx::llm
