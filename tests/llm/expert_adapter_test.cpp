// Adapters of experts, in every form that files have, beside the same change merged into the weights.
#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/io/gguf.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "rlx/llm/adapter.h"
#include "rlx/llm/finetune.h"
#include "rlx/llm/quantize_model.h"
#include "tests/models/gguf_form.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::llm {
namespace {

using test::Scratch;
using Tensors = std::map<std::string, Literal>;

Literal sampled(const Dims& dims, uint64_t seed) {
  return ir::sample_literal(cat(Shape(DType::f32, dims)), seed);
}

void write_tensors(const std::string& path, const Tensors& tensors) {
  std::vector<io::TensorView> views;
  for (const auto& [name, value] : tensors) views.push_back(io::to_view(name, value));
  io::write_safetensors(path, views);
}

// W + scale B A, of matrices [out, in], [out, rank], [rank, in].
Literal changed(const Literal& w, const Literal& b, const Literal& a, double scale) {
  const int64_t out = w.shape().dim(0).value(), in = w.shape().dim(1).value(),
                rank = a.shape().dim(0).value();
  std::vector<double> v;
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < rank; ++r) sum += b.real_at(o * rank + r) * a.real_at(r * in + i);
      v.push_back(w.real_at(o * in + i) + scale * sum);
    }
  return Literal::reals(w.shape(), v);
}

// A checkpoint whose experts are changed by pairs of matrices.
struct Changed {
  explicit Changed(const std::string& checkpoint) : folder(test::data_path("checkpoints/" + checkpoint)) {
    for (const io::TensorView& t : io::ModelFile::open(folder).tensors)
      tensors.emplace(t.name, io::to_literal(t));
  }

  struct Pair {
    Literal a, b;
  };
  Pair change(const std::string& module, int64_t rank, double scale) {
    Literal& w = tensors.at(module + ".weight");
    const uint64_t seed = std::hash<std::string>()(module) % 1000;
    const Pair p{sampled({rank, w.shape().dim(1)}, seed), sampled({w.shape().dim(0), rank}, seed + 1)};
    w = changed(w, p.b, p.a, scale);
    return p;
  }

  std::string merged(const Scratch& scratch) const {
    const std::string path = scratch.path("merged");
    std::filesystem::create_directories(path);
    std::filesystem::copy_file(folder + "/config.json", path + "/config.json",
                               std::filesystem::copy_options::overwrite_existing);
    write_tensors(path + "/model.safetensors", tensors);
    return path;
  }

  std::string folder;
  Tensors tensors;
};

std::string peft(const Scratch& scratch, const Tensors& pairs, const std::string& more = "") {
  const std::string path = scratch.path("adapter");
  std::filesystem::create_directories(path);
  write_file(path + "/adapter_config.json",
             cat(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none")", more, "}"));
  write_tensors(path + "/adapter_model.safetensors", pairs);
  return path;
}

Literal logits_of(const models::Model& model, const Adapter* adapter) {
  models::GraphOptions options;
  if (adapter != nullptr) {
    adapter->check_fits(model);
    options.linear = adapter->hook();
  }
  models::ModelGraph g = model.graph(options);
  if (adapter != nullptr)
    for (const auto& [name, value] : adapter->weights()) g.weights.insert_or_assign(name, value);
  return compile(g.graph, g.weights)
      .run({{"input_ids", Literal::of<int32_t>({2, 6}, {5, 9, 2, 7, 100, 31, 8, 8, 40, 3, 1, 77})}})
      .at("logits");
}

void expect_close(const Literal& got, const Literal& want) {
  const int64_t rows = want.elements() / want.shape().dim(-1).value();
  EXPECT_LT(test::largest_difference(got, 0, want, 0, rows), 10 * test::agreement(want));
}

struct Named {
  const char* checkpoint;
  std::string modules[3];  // gate, up, down, of an expert {e}
};

class ExpertAdapters : public testing::TestWithParam<Named> {
 protected:
  void SetUp() override { RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam().checkpoint); }
  static std::string of(std::string module, int64_t expert) {
    return module.replace(module.find("{e}"), 3, cat(expert));
  }
};

const Named kModels[] = {
    {"qwen3_moe",
     {"model.layers.1.mlp.experts.{e}.gate_proj", "model.layers.1.mlp.experts.{e}.up_proj",
      "model.layers.2.mlp.experts.{e}.down_proj"}},
    {"mixtral",
     {"model.layers.0.block_sparse_moe.experts.{e}.w1", "model.layers.1.block_sparse_moe.experts.{e}.w3",
      "model.layers.1.block_sparse_moe.experts.{e}.w2"}},
    {"deepseek_v3",
     {"model.layers.1.mlp.experts.{e}.gate_proj", "model.layers.2.mlp.experts.{e}.up_proj",
      "model.layers.2.mlp.experts.{e}.down_proj"}}};

INSTANTIATE_TEST_SUITE_P(Models, ExpertAdapters, testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.checkpoint); });

// A pair for each expert: some experts have none, ranks differ, and one has a scale of its own.
TEST_P(ExpertAdapters, APairForEachExpert) {
  const Scratch scratch;
  Changed files(GetParam().checkpoint);
  const Literal before = logits_of(models::open_model(files.folder), nullptr);
  Tensors pairs;
  for (const std::string& module : GetParam().modules)
    for (const int64_t expert : {0, 1, 3}) {
      const std::string name = of(module, expert);
      const int64_t rank = expert == 1 ? 2 : 4;
      const bool own = expert == 3 && module == GetParam().modules[2];
      const auto pair = files.change(name, rank, (own ? 3.0 : 8.0) / double(rank));
      pairs["base_model.model." + name + ".lora_A.weight"] = pair.a;
      pairs["base_model.model." + name + ".lora_B.weight"] = pair.b;
    }
  const std::string third = of(GetParam().modules[2], 3);
  const Adapter adapter =
      Adapter::open(peft(scratch, pairs, cat(R"(, "alpha_pattern": {")", third, R"(": 3})")));
  EXPECT_EQ(adapter.parts().size(), 3u);
  const Literal want = logits_of(models::open_model(files.merged(scratch)), nullptr);
  const int64_t rows = want.elements() / want.shape().dim(-1).value();
  EXPECT_GT(test::largest_difference(before, 0, want, 0, rows), 1e-2) << "the adapter changes nothing";
  expect_close(logits_of(models::open_model(files.folder), &adapter), want);
  // The same adapter beside a GGUF file of the model.
  const std::string gguf = scratch.path("model.gguf");
  test::write_gguf_form(models::open_model(files.folder), gguf);
  expect_close(logits_of(models::open_model(gguf), &adapter), want);
  // Written again, and opened.
  adapter.write(scratch.path("again"), "base");
  const Adapter again = Adapter::open(scratch.path("again"));
  expect_close(logits_of(models::open_model(files.folder), &again), want);
}

// GGUF's adapters have the experts of a weight in one tensor.
TEST_P(ExpertAdapters, AllExpertsInOneTensorOfGguf) {
  const Scratch scratch;
  Changed files(GetParam().checkpoint);
  const models::Model folder = models::open_model(files.folder);
  const int64_t experts = folder.config().moe.experts, rank = 3;
  std::map<std::string, std::pair<std::vector<float>, std::vector<float>>> halves;
  std::map<std::string, std::pair<int64_t, int64_t>> sizes;
  const char* const words[] = {"gate", "up", "down"};
  for (size_t m = 0; m < 3; ++m)
    for (int64_t e = 0; e < experts; ++e) {
      const std::string& module = GetParam().modules[m];
      const auto pair = files.change(of(module, e), rank, 6.0 / double(rank));
      const std::string layer = module.substr(13, module.find('.', 13) - 13);  // behind "model.layers."
      const std::string name = cat("blk.", layer, ".ffn_", words[m], "_exps.weight");
      auto& [a, b] = halves[name];
      const auto pa = pair.a.data<float>(), pb = pair.b.data<float>();
      a.insert(a.end(), pa.begin(), pa.end());
      b.insert(b.end(), pb.begin(), pb.end());
      sizes[name] = {pair.a.shape().dim(1).value(), pair.b.shape().dim(0).value()};
    }
  io::GgufWriter out;
  out.add_string("general.type", "adapter");
  out.add_string("adapter.type", "lora");
  out.add_f32("adapter.lora.alpha", 6);
  Tensors tensors;
  for (const auto& [name, ab] : halves) {
    const auto [in, wide] = sizes.at(name);
    tensors.emplace(name + ".lora_a", Literal::of<float>({experts, rank, in}, ab.first));
    tensors.emplace(name + ".lora_b", Literal::of<float>({experts, wide, rank}, ab.second));
  }
  std::vector<io::TensorView> views;
  for (const auto& [name, value] : tensors) views.push_back(io::to_view(name, value));
  for (const io::TensorView& v : views) out.add_tensor(v);
  out.write(scratch.path("adapter.gguf"));
  const Adapter adapter = Adapter::open(scratch.path("adapter.gguf"));
  const std::string gguf = scratch.path("model.gguf");
  test::write_gguf_form(folder, gguf);
  expect_close(logits_of(models::open_model(gguf), &adapter),
               logits_of(models::open_model(files.merged(scratch)), nullptr));
}

// PEFT's pair for a parameter that holds all experts: A [experts * rank, in], B [out, rank * experts], B by rank, then expert.
struct Joined {
  Literal a, b;
};
Joined joined(Changed& files, const std::vector<std::string>& halves, int64_t experts, int64_t rank) {
  const Literal& first = files.tensors.at(halves[0].substr(0, halves[0].find("{e}")) + "0" +
                                          halves[0].substr(halves[0].find("{e}") + 3) + ".weight");
  const int64_t each = first.shape().dim(0).value(), in = first.shape().dim(1).value();
  const int64_t out = each * int64_t(halves.size());
  const Joined j{sampled({experts * rank, in}, 71), sampled({out, rank * experts}, 72)};
  for (size_t h = 0; h < halves.size(); ++h)
    for (int64_t e = 0; e < experts; ++e) {
      std::vector<double> a, b;
      for (int64_t i = 0; i < rank * in; ++i) a.push_back(j.a.real_at(e * rank * in + i));
      for (int64_t o = 0; o < each; ++o)
        for (int64_t r = 0; r < rank; ++r)
          b.push_back(j.b.real_at(((int64_t(h) * each + o) * rank + r) * experts + e));
      std::string name = halves[h];
      Literal& w = files.tensors.at(name.replace(name.find("{e}"), 3, cat(e)) + ".weight");
      w = changed(w, Literal::reals(Shape(DType::f32, {each, rank}), b),
                  Literal::reals(Shape(DType::f32, {rank, in}), a), 2);
    }
  return j;
}

TEST(ExpertAdapter, JoinedParameters) {
  RLX_REQUIRE_DATA("checkpoints/qwen3_moe");
  const Scratch scratch;
  const std::string layer = "model.layers.1.mlp.experts", front = "base_model.model." + layer;
  const int64_t experts = 8;
  // Of rank 4, or of another that a pattern gives the parameter, with an alpha for the same scale.
  for (const auto& [with_down, rank] : {std::pair<bool, int64_t>{false, 4}, {true, 4}, {true, 6}}) {
    Changed files("qwen3_moe");
    Tensors pairs;
    const auto put = [&](const std::string& module, const Joined& j) {
      pairs[module + ".lora_A.weight"] = j.a;
      pairs[module + ".lora_B.weight"] = j.b;
    };
    put(with_down ? front + ".base_layer" : front,
        joined(files, {layer + ".{e}.gate_proj", layer + ".{e}.up_proj"}, experts, rank));
    if (with_down) put(front, joined(files, {layer + ".{e}.down_proj"}, experts, 4));
    std::string targets =
        with_down ? R"(, "target_parameters": ["mlp.experts.down_proj", "mlp.experts.gate_up_proj"])"
                  : R"(, "target_parameters": ["mlp.experts.gate_up_proj"])";
    if (rank != 4)
      targets += cat(R"(, "rank_pattern": {".*\\.gate_up_proj": )", rank,
                     R"(}, "alpha_pattern": {".*\\.gate_up_proj": )", 2 * rank, "}");
    const Adapter adapter = Adapter::open(peft(scratch, pairs, targets));
    expect_close(logits_of(models::open_model(files.folder), &adapter),
                 logits_of(models::open_model(files.merged(scratch)), nullptr));
    EXPECT_NE(test::message_of([&] { Adapter::open(peft(scratch, pairs)); }).find("is not told"),
              std::string::npos);
  }
}

// PiSSA and its like take their start out of the model's weights, when they are trained and again when they are loaded.
TEST(Adapter, OneThatChangesTheModelIsRefused) {
  const Scratch scratch;
  const Tensors pairs{{"base_model.model.q.lora_A.weight", sampled({4, 8}, 1)},
                      {"base_model.model.q.lora_B.weight", sampled({8, 4}, 2)}};
  const auto message = [&](const std::string& start) {
    return test::message_of(
        [&] { Adapter::open(peft(scratch, pairs, R"(, "init_lora_weights": )" + start)); });
  };
  for (const char* start : {"true", "false", "null", "\"gaussian\"", "\"orthogonal\"", "\"eva\""})
    EXPECT_EQ(message(start), "no error") << start;
  for (const char* start : {"\"pissa\"", "\"pissa_niter_4\"", "\"olora\"", "\"corda\"", "\"loftq\""})
    EXPECT_NE(message(start).find(cat("init_lora_weights is ", start)), std::string::npos) << message(start);
}

TEST(ExpertAdapter, WhatDoesNotFitIsRefused) {
  RLX_REQUIRE_DATA("checkpoints/qwen3_moe");
  const Scratch scratch;
  const models::Model model = models::open_model(test::data_path("checkpoints/qwen3_moe"));
  const auto refusal = [&](const std::string& module, int64_t in, int64_t out) {
    const Tensors pairs{{"base_model.model." + module + ".lora_A.weight", sampled({4, in}, 1)},
                        {"base_model.model." + module + ".lora_B.weight", sampled({out, 4}, 2)}};
    return test::message_of([&] { Adapter::open(peft(scratch, pairs)).check_fits(model); });
  };
  EXPECT_NE(refusal("model.layers.0.mlp.experts.8.gate_proj", 64, 64).find("9 experts"), std::string::npos);
  EXPECT_NE(refusal("model.layers.0.mlp.experts.1.gate_proj", 32, 64).find("is for a weight of [64, 32]"),
            std::string::npos);
  EXPECT_NE(refusal("model.layers.0.mlp.experts.1.w7", 64, 64).find("has no weight"), std::string::npos);
}

// Experts are trained beside packed weights, and the adapter serves what was trained.
TEST(ExpertAdapter, IsTrained) {
  RLX_REQUIRE_DATA("checkpoints/qwen3_moe");
  const Scratch scratch;
  const std::string plain = scratch.path("plain.gguf"), packed = scratch.path("packed.gguf");
  test::write_gguf_form(models::open_model(test::data_path("checkpoints/qwen3_moe")), plain);
  quantize_model(plain, packed, quant_mix_named("Q8_0"));
  for (const std::string& path : {test::data_path("checkpoints/qwen3_moe"), packed}) {
    const models::Model model = models::open_model(path);
    TrainingTexts texts;
    for (int32_t t = 0; t < 8; ++t) {
      TrainingText text;
      for (int32_t i = 0; i < 16; ++i) {
        text.ids.push_back((t * 7 + i * 3) % 40 + 2);
        text.learnt.push_back(i > 0);
      }
      texts.texts.push_back(std::move(text));
    }
    FinetuneOptions o;
    o.adapter.rank = 4;
    o.adapter.targets = {"gate_proj", "up_proj", "down_proj"};
    o.batch = 4;
    o.steps = 20;
    o.schedule = {.name = "constant", .rate = 5e-3};
    Finetuning run(model, std::move(texts), o);
    for (const auto& [name, part] : run.adapter().parts()) EXPECT_TRUE(part.of_experts()) << name;
    const double first = run.step().loss;
    double last = first;
    while (run.steps() < run.total_steps()) last = run.step().loss;
    EXPECT_LT(last, 0.8 * first) << path;
    run.adapter().write(scratch.path("trained"), "base");
    const Adapter opened = Adapter::open(scratch.path("trained"));
    const Literal served = logits_of(model, &opened), trained = logits_of(model, &run.adapter());
    EXPECT_TRUE(std::equal(served.bytes().begin(), served.bytes().end(), trained.bytes().begin()));
  }
}

}  // namespace
}  // namespace rlx::llm
