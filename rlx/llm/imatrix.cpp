#include "rlx/llm/imatrix.h"

#include <algorithm>
#include <memory>

#include "rlx/base/error.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/operators.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::llm {

std::vector<float> ImportanceMatrix::Entry::means(int64_t expert) const {
  const int64_t n = columns();
  const double count = counts[size_t(expert)];
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(count > 0 ? float(sums[size_t(expert * n + i)] / count) : 0.0f);
  return out;
}

const ImportanceMatrix::Entry* ImportanceMatrix::find(std::string_view name) const {
  const auto it = entries.find(name);
  return it == entries.end() ? nullptr : &it->second;
}

void ImportanceMatrix::add(const ImportanceMatrix& other) {
  for (const auto& [name, entry] : other.entries) {
    const auto [it, is_new] = entries.emplace(name, entry);
    if (is_new) continue;
    Entry& own = it->second;
    if (own.sums.size() != entry.sums.size() || own.counts.size() != entry.counts.size())
      throw invalid("imatrix: '", name, "' has ", own.columns(), " columns here and ", entry.columns(),
                    " there");
    for (size_t i = 0; i < own.sums.size(); ++i) own.sums[i] += entry.sums[i];
    for (size_t i = 0; i < own.counts.size(); ++i) own.counts[i] += entry.counts[i];
  }
  datasets.insert(datasets.end(), other.datasets.begin(), other.datasets.end());
  chunks += other.chunks;
  chunk_size = std::max(chunk_size, other.chunk_size);
}

namespace {

// The graph of a model whose results are the sums of squares that its products read. Products that read one tensor share the sum.
class Measured {
 public:
  Measured(const models::Model& model, const CompileOptions& options) : graph_(built(model)) {
    ir::Values values;
    std::vector<std::string> names;
    for (const Watched& w : watched_) {
      values.push_back(w.sums);
      names.push_back(w.name);
      if (w.experts == 0) continue;
      values.push_back(w.counts);
      names.push_back(w.name + "#counts");
    }
    graph_.graph.set_outputs(values, names);
    graph_.graph.erase_dead();
    run_ = std::make_unique<CompiledGraph>(graph_.graph, used_weights(), options);
  }

  void run(std::span<const text::TokenId> ids, ImportanceMatrix& into) {
    const auto n = int64_t(ids.size());
    const Outputs out = run_->run({{"input_ids", view(ids.data(), {1, n})}});
    for (const Watched& w : watched_) {
      ImportanceMatrix::Entry& e = into.entries[w.name];
      const auto sums = out.view(w.name).as<const float>();
      e.sums.resize(sums.size());
      for (size_t i = 0; i < sums.size(); ++i) e.sums[i] += double(sums[i]);
      e.counts.resize(size_t(std::max<int64_t>(w.experts, 1)));
      if (w.experts == 0) {
        e.counts[0] += double(n);
        continue;
      }
      const auto counts = out.view(w.name + "#counts").as<const float>();
      for (size_t i = 0; i < counts.size(); ++i) e.counts[i] += double(counts[i]);
    }
  }

 private:
  struct Watched {
    std::string name;
    int64_t experts = 0;  // 0: every row meets the one weight
    ir::Value sums, counts;
  };

  models::ModelGraph built(const models::Model& model) {
    const int64_t experts = model.config().moe.experts;
    return model.graph(
        {.observe = [&](const models::LinearSite& site, const Tensor& x, const Tensor& expert) {
          if (site.gguf.empty()) return;
          for (const Watched& w : watched_)
            if (w.name == site.gguf) return;
          const Tensor square = x.square();
          Watched w{site.gguf, 0, {}, {}};
          if (expert.is_empty()) {
            std::vector<int> all;
            for (int i = 0; i + 1 < x.rank(); ++i) all.push_back(i);
            w.sums = square.sum(all);
          } else {
            const Tensor mine = one_hot(expert, {.depth = experts});  // [rows, experts]
            w.experts = experts;
            w.sums = mine.t().matmul(square);
            w.counts = mine.sum({0});
          }
          watched_.push_back(std::move(w));
        }});
  }

  NamedLiterals used_weights() const {
    NamedLiterals out;
    for (const ir::NodeId id : graph_.graph.params()) {
      const std::string& name = ir::leaf_name(graph_.graph.node(id));
      out.insert_or_assign(name, graph_.weights.at(name));
    }
    return out;
  }

  std::vector<Watched> watched_;
  models::ModelGraph graph_;
  std::unique_ptr<CompiledGraph> run_;
};

}  // namespace

ImportanceMatrix measure_importance(const models::Model& model, std::span<const text::TokenId> text,
                                    const MeasureOptions& options,
                                    const std::function<void(int64_t, int64_t)>& progress) {
  const models::Config& c = model.config();
  const auto size = int64_t(text.size());
  if (size < 1) throw invalid("imatrix: the text has no tokens");
  int64_t chunk = options.chunk;
  if (c.max_positions > 0) chunk = std::min(chunk, c.max_positions);
  if (chunk < 1) throw invalid("imatrix: chunks of ", options.chunk, " tokens; 1 or more expected");
  for (const text::TokenId id : text)
    if (id < 0 || id >= c.vocab) throw invalid("imatrix: token ", id, " is not below ", c.vocab);
  Measured measured(model, options.compile);
  ImportanceMatrix out;
  out.chunk_size = chunk;
  const bool begins = c.bos && text[0] == text::TokenId(*c.bos);
  std::vector<text::TokenId> piece;
  for (int64_t at = 0; at < size; at += chunk) {
    const int64_t n = std::min(chunk, size - at);
    if (at > 0 && 2 * n < chunk) break;
    piece.assign(text.begin() + at, text.begin() + at + n);
    if (begins) piece[0] = text[0];
    measured.run(piece, out);
    ++out.chunks;
    if (progress) progress(at + n, size);
  }
  return out;
}

}  // namespace rlx::llm
