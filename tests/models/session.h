// A model run with states, as an engine would: the texts of a batch in pieces, padded in front to one length.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/models/model.h"
#include "rlx/models/rope.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/data.h"

namespace rlx::test {

using Tokens = std::vector<int32_t>;

inline CompileOptions options_of(const models::ModelGraph& g) {
  CompileOptions out{.device = test_device()};
  for (const models::State& s : g.states) out.states.push_back({s.input, s.output});
  return out;
}

class Session {
 public:
  Session(const models::Model& model, int64_t rows, int64_t capacity, int64_t context_length = 0,
          models::GraphOptions options = {})
      : graph_(model.graph(sized(options, rows, capacity))),
        run_(compile(graph_.graph, graph_.weights, options_of(graph_))),
        rows_(rows),
        capacity_(capacity),
        held_(size_t(rows)),
        length_(context_length),
        asks_length_(models::depends_on_length(model.config().rope)) {}

  /// The next pieces, one for each row, of one length; -1 stands for padding. Gives logits [rows, seq, vocab].
  Literal step(const std::vector<Tokens>& pieces) {
    const auto seq = int64_t(pieces[0].size());
    // Sizes are constants of a GPU's kernels, so there all slots are looked at from the first run on.
    const int64_t keys = on_cpu_ ? start_ + seq : capacity_;
    std::vector<int32_t> ids, positions, key_positions;
    for (int64_t r = 0; r < rows_; ++r) {
      for (const int32_t id : pieces[size_t(r)]) {
        const bool padding = id < 0;
        ids.push_back(padding ? 0 : id);
        positions.push_back(padding ? -1 : next_[size_t(r)]++);
        held_[size_t(r)].push_back(positions.back());
      }
      key_positions.insert(key_positions.end(), held_[size_t(r)].begin(), held_[size_t(r)].end());
      key_positions.resize(size_t((r + 1) * keys), -1);
    }
    NamedLiterals in{{"input_ids", Literal::of<int32_t>({rows_, seq}, ids)},
                     {"positions", Literal::of<int32_t>({rows_, seq}, positions)},
                     {"start", Literal::of<int32_t>({1}, {int32_t(start_)})},
                     {"key_positions", Literal::of<int32_t>({rows_, keys}, key_positions)}};
    if (asks_length_) in.emplace("context_length", Literal::of<int32_t>({1}, {int32_t(length_)}));
    start_ += seq;
    return run_.run(in).at("logits");
  }

 private:
  static models::GraphOptions sized(models::GraphOptions o, int64_t rows, int64_t capacity) {
    o.batch = rows;
    o.capacity = capacity;
    return o;
  }

  models::ModelGraph graph_;
  CompiledGraph run_;
  int64_t rows_, capacity_, start_ = 0;
  bool on_cpu_ = test_device() == "cpu";
  std::vector<Tokens> held_;
  std::vector<int32_t> next_ = std::vector<int32_t>(size_t(rows_), 0);
  int64_t length_;
  bool asks_length_;
};

/// Of the logits of a checkpoint, as ../shared/data states it.
inline constexpr double kLogitTolerance = 2e-4;

/// The checkpoints of the test data by name; "absent" where there is none, so that a test can say so.
inline std::vector<std::string> checkpoint_folders() {
  std::vector<std::string> out;
  const std::string root = data_path("checkpoints");
  if (!std::filesystem::exists(root)) return {"absent"};
  for (const auto& entry : std::filesystem::directory_iterator(root)) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

/// The values expected beside a model, by name.
inline NamedLiterals expected_values(const std::string& path) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  NamedLiterals out;
  for (const io::TensorView& t : file.tensors()) out.emplace(t.name, io::to_literal(t));
  return out;
}

inline Tokens row_of(const Literal& ids, int64_t row) {
  const int64_t n = ids.shape().dim(1).value();
  Tokens out;
  for (int64_t i = 0; i < n; ++i) out.push_back(int32_t(ids.integer_at(row * n + i)));
  return out;
}

/// Largest difference of rows [first, first + count) of one text, each of `width` numbers.
inline double largest_difference(const Literal& a, int64_t a_row, const Literal& b, int64_t b_row,
                                 int64_t count) {
  const int64_t width = a.shape().dim(-1).value();
  double out = 0;
  for (int64_t i = 0; i < count * width; ++i) {
    const double d = std::abs(a.real_at(a_row * width + i) - b.real_at(b_row * width + i));
    out = d <= out ? out : d;  // a NaN stays
  }
  return out;
}

/// What two orders of the same sums may differ by: 1e-5 of the largest number. A GPU splits sums by the number of rows, so that
/// nothing is added in the same order: there twice that. Each order may be 0.8e-5 away from the logits in f64 (llama_yarn, token
/// 24, the least well conditioned: f32 sums in eight permuted orders differ by up to 6.2e-5 of 5.3).
inline double agreement(const Literal& x) {
  double most = 1;
  for (int64_t i = 0; i < x.elements(); ++i) most = std::max(most, std::abs(x.real_at(i)));
  return (test_device() == "cpu" ? 1e-5 : 2e-5) * most;
}

inline int32_t largest(const Literal& logits, int64_t row) {
  const int64_t width = logits.shape().dim(-1).value();
  int64_t best = 0;
  for (int64_t i = 1; i < width; ++i) {
    if (logits.real_at(row * width + i) > logits.real_at(row * width + best)) best = i;
  }
  return int32_t(best);
}

}  // namespace rlx::test
