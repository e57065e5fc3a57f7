// The stored training curves: a loss graph (tests/train/graphs), and what the data folder says of data and optimiser.
#pragma once

#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/train/batches.h"
#include "rlx/train/trainer.h"
#include "tests/support/data.h"

namespace rlx::test {

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A loss graph of tests/train/graphs with its floats in this type.
inline ir::Graph loss_graph(const std::string& name, DType dtype = DType::f32) {
  const std::string text = read_file(cat("tests/train/graphs/", name, ".rlx"));
  return ir::parse_graph(replaced(text, "f32", cat(dtype)), ops::table());
}

inline NamedLiterals tensors_of(const std::string& path, std::optional<DType> floats = {}) {
  NamedLiterals out;
  const auto file = io::SafetensorsFile::open(path);
  for (const io::TensorView& t : file.tensors()) {
    const Literal value = io::to_literal(t);
    out.emplace(t.name, floats && is_float(value.dtype()) ? value.cast(*floats) : value);
  }
  return out;
}

class Case {
 public:
  Case(std::string name, DType dtype)
      : name_(std::move(name)),
        folder_(data_path("training/" + name_)),
        dtype_(dtype),
        config_(Json::read(folder_ + "/config.json")),
        curve_(Json::read(folder_ + "/curve.json")),
        graph_(loss_graph(name_, dtype)) {}

  const ir::Graph& graph() const { return graph_; }
  int64_t steps() const { return config_.at("steps").integer(); }
  NamedLiterals weights() const { return tensors_of(folder_ + "/init.safetensors", dtype_); }
  NamedLiterals data() const { return tensors_of(folder_ + "/data.safetensors"); }
  NamedLiterals final_weights(const std::string& file = "final") const {
    return tensors_of(cat(folder_, "/", file, ".safetensors"), DType::f64);
  }
  std::vector<double> losses(const std::string& key = "float64") const {
    std::vector<double> out;
    for (const JsonView v : curve_.at(key).items()) out.push_back(v.real());
    return out;
  }
  double tolerance(const std::string& key) const { return config_.at("tolerance").at(key).real(); }
  /// What the first axis of the data has for each step.
  int64_t accumulate() const {
    const JsonView data = config_.at("data");
    const auto first = (*data.members().begin()).value;
    return first.at("shape").at(size_t(0)).integer() / steps();
  }

  train::TrainOptions options() const {
    train::TrainOptions o;
    const JsonView optimizer = config_.at("optimizer");
    train::Settings settings;
    for (const auto [key, value] : optimizer.members()) {
      if (key == "name" || key == "formula" || key == "lr") continue;
      if (key == "betas") {
        settings["beta1"] = value.at(size_t(0)).real();
        settings["beta2"] = value.at(size_t(1)).real();
      } else {
        settings[std::string(key)] =
            value.kind() == JsonKind::boolean ? double(value.boolean()) : value.real();
      }
    }
    std::string method(optimizer.at("name").string());
    for (char& c : method) c = char(std::tolower(c));
    o.optimizer = train::optimizer_named(method, settings);
    const double rate = optimizer.at("lr").real();
    o.rate = train::constant(rate);
    if (const auto s = config_.find("schedule")) {
      const int64_t warm = s->at("warmup_steps").integer(), all = s->at("total_steps").integer();
      o.rate = train::warm_up(warm, train::cosine(rate, all - warm, s->at("min_lr").real()));
    }
    if (const auto c = config_.find("gradient_clipping")) o.clip_norm = c->at("max_norm").real();
    for (const JsonView v : config_.at("frozen").items()) o.frozen.emplace_back(v.string());
    o.accumulate = accumulate();
    return o;
  }

 private:
  std::string name_, folder_;
  DType dtype_;
  Json config_, curve_;
  ir::Graph graph_;
};

/// Trains a case to its end.
struct Run {
  std::vector<double> losses;
  NamedLiterals weights;
};
inline Run run_case(const Case& c, const train::TrainOptions& options) {
  train::Trainer trainer(c.graph(), c.weights(), options);
  train::Batches batches(c.graph(), c.data(), options.accumulate);
  Run out;
  for (int64_t i = 0; i < c.steps(); ++i) out.losses.push_back(trainer.step(batches.at(i)).loss);
  out.weights = trainer.weights();
  return out;
}

/// max |a - b| / max |b|
inline double relative_difference(const Literal& a, const Literal& b) {
  double most = 0, largest = 0;
  for (int64_t i = 0; i < b.elements(); ++i) {
    most = std::max(most, std::fabs(a.real_at(i) - b.real_at(i)));
    largest = std::max(largest, std::fabs(b.real_at(i)));
  }
  return largest > 0 ? most / largest : most;
}

}  // namespace rlx::test
