// A checkpoint of the test data, open to change: its configuration as text, its tensors by name.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "rlx/base/file.h"
#include "tests/models/session.h"
#include "tests/support/compare.h"
#include "tests/support/scratch.h"

namespace rlx::test {

struct Folder {
  explicit Folder(const std::string& checkpoint) : path(data_path("checkpoints/" + checkpoint)) {
    for (const io::TensorView& t : io::ModelFile::open(path).tensors)
      tensors.emplace(t.name, io::to_literal(t));
    config = read_file(path + "/config.json");
  }

  std::string write(const Scratch& scratch) const {
    const std::string to = scratch.path("model");
    std::filesystem::create_directories(to);
    write_file(to + "/config.json", config);
    std::vector<io::TensorView> views;
    for (const auto& [name, value] : tensors) views.push_back(io::to_view(name, value));
    io::write_safetensors(to + "/model.safetensors", views);
    return to;
  }

  /// Matrices by expert, "FRONT.{e}.PART.weight" for each of the parts in turn, as one tensor `name`.
  void join(const std::string& front, const std::vector<std::string>& parts, int64_t experts,
            const std::string& name) {
    std::vector<float> all;
    int64_t rows = 0, width = 0;
    for (int64_t e = 0; e < experts; ++e) {
      rows = 0;
      for (const std::string& part : parts) {
        const auto it = tensors.find(cat(front, ".", e, ".", part, ".weight"));
        ASSERT_NE(it, tensors.end()) << front << " " << e << " " << part;
        const auto values = it->second.data<float>();
        all.insert(all.end(), values.begin(), values.end());
        rows += it->second.shape().dim(0).value();
        width = it->second.shape().dim(1).value();
        tensors.erase(it);
      }
    }
    tensors.emplace(name, Literal::of<float>({experts, rows, width}, all));
  }

  /// As the part `text_config` of the configuration `type`, beside a part for pictures.
  void nest(const std::string& type) {
    config = cat(R"({"model_type": ")", type,
                 R"(", "image_token_id": 7, "vision_config": {"depth": 2}, "text_config": )", config, "}");
    std::map<std::string, Literal> renamed;
    for (const auto& [name, value] : tensors)
      renamed.emplace(name.starts_with("model.") ? "model.language_model." + name.substr(6) : name, value);
    renamed.emplace("model.visual.blocks.0.attn.proj.weight", Literal::zeros(Shape(DType::f32, {4, 4})));
    tensors = std::move(renamed);
  }

  /// Another value for a field that is there.
  void set(const std::string& field, const std::string& value) {
    const size_t at = config.find(cat("\"", field, "\": "));
    ASSERT_NE(at, config.npos) << field;
    const size_t from = config.find(": ", at) + 2, to = config.find_first_of(",\n}", from);
    config.replace(from, to - from, value);
  }

  /// Leaves out a field that is there and not the last one.
  void drop(const std::string& field) {
    const size_t at = config.find(cat("\"", field, "\": "));
    ASSERT_NE(at, config.npos) << field;
    config.erase(at, config.find(",", at) + 1 - at);
  }

  std::string path, config;
  std::map<std::string, Literal> tensors;
};

inline void expect_logits(const std::string& path, const std::string& checkpoint) {
  const NamedLiterals want = expected_values(checkpoint + "/expected.safetensors");
  const models::Model model = models::open_model(path);
  const models::ModelGraph g = model.graph();
  const Literal got =
      compile(g.graph, g.weights, options_of(g)).run({{"input_ids", want.at("input_ids")}}).at("logits");
  EXPECT_LT(largest_difference(got, 0, want.at("logits"), 0, want.at("input_ids").elements()),
            kLogitTolerance);
}

}  // namespace rlx::test
