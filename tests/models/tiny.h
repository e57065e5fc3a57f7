// A tiny Llama in a folder of its own, with its configuration and tensors open to change.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "tests/support/scratch.h"

namespace rlx::test {

struct TinyLlama {
  std::map<std::string, std::string> config{{"model_type", "\"llama\""},    {"vocab_size", "16"},
                                            {"hidden_size", "8"},           {"num_hidden_layers", "1"},
                                            {"num_attention_heads", "2"},   {"intermediate_size", "12"},
                                            {"rms_norm_eps", "1e-6"},       {"max_position_embeddings", "8"},
                                            {"tie_word_embeddings", "true"}};
  std::map<std::string, Literal> tensors;

  TinyLlama() {
    const auto add = [&](const std::string& name, Dims dims) {
      tensors.emplace(name, ir::sample_literal(cat(Shape(DType::f32, dims)), tensors.size() + 1));
    };
    const std::string layer = "model.layers.0.";
    add("model.embed_tokens.weight", {16, 8});
    add("model.norm.weight", {8});
    add(layer + "input_layernorm.weight", {8});
    add(layer + "post_attention_layernorm.weight", {8});
    for (const char* name : {"q", "k", "v", "o"}) add(layer + "self_attn." + name + "_proj.weight", {8, 8});
    for (const char* name : {"gate", "up"}) add(layer + "mlp." + name + "_proj.weight", {12, 8});
    add(layer + "mlp.down_proj.weight", {8, 12});
  }

  /// Writes the folder; its path.
  std::string write(const Scratch& scratch, const std::string& name = "model") const {
    const std::string path = scratch.path(name);
    std::filesystem::create_directories(path);
    std::string json = "{";
    for (const auto& [key, value] : config)
      json += cat(json.size() > 1 ? ", " : "", "\"", key, "\": ", value);
    std::ofstream(path + "/config.json") << json << "}";
    std::vector<io::TensorView> views;
    for (const auto& [tensor, value] : tensors) views.push_back(io::to_view(tensor, value));
    io::write_safetensors(path + "/model.safetensors", views);
    return path;
  }
};

}  // namespace rlx::test
