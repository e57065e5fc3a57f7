// What clones of a compiled graph share: the optimised graph, its weights, and a program for every size that was run.
#pragma once

#include <atomic>
#include <list>
#include <mutex>

#include "rlx/backend/builder.h"
#include "rlx/passes/fuse.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/pipeline.h"
#include "rlx/runtime/weights.h"

namespace rlx::runtime {

/// A program for one set of sizes. Immutable.
struct Instance {
  std::vector<Shape> leaves, outputs;
  std::shared_ptr<const backend::Executable> program;
  std::vector<passes::Remark> remarks;  // of the passes for these sizes
  // Forms of the weights as they were at `version`.
  uint64_t version = 0;  // 0: there are none yet
  std::vector<std::shared_ptr<const void>> forms;
  std::vector<const void*> packed;
  std::vector<std::shared_ptr<const std::byte>> weights;  // by leaf; the memory that the program reads
};

enum class LeafRole : uint8_t { input, param, state };

/// A compiled graph as data: what a file keeps (rlx/runtime/archive.h).
struct Prepared {
  ir::Graph graph;        // behind the passes on any sizes, without what depends on weights alone
  NamedLiterals weights;  // of all its params
  CompileOptions options;
  std::vector<std::pair<std::vector<Shape>, ir::Graph>>
      programs;                   // for types of the leaves, behind all passes
  std::vector<StoredForm> forms;  // of the weights; leaves as the graph numbers them
};

class Core {
 public:
  /// With `split`, what depends on weights alone becomes a prologue that runs when they are set.
  Core(const ir::Graph& graph, const NamedLiterals& weights, const CompileOptions& options,
       bool split = true);

  /// No pass runs for the sizes that it has programs for. Its weights stay.
  explicit Core(Prepared);
  /// With the sizes that were run, and those of the graph if it leaves none open. Weights that are missing are a user error.
  Prepared prepared();

  struct Leaf {
    std::string name;
    Shape shape;  // as declared
    LeafRole role = LeafRole::input;
    int state = -1;
  };
  struct Output {
    std::string name;
    Shape shape;
    int state = -1;
  };

  const ir::Graph& graph() const { return graph_; }
  const CompileOptions& options() const { return options_; }
  const backend::Builder& builder() const { return builder_; }
  /// What runs when weights are set; null when nothing depends on them alone.
  CompiledGraph* prologue() const { return prologue_.get(); }
  /// Runs it once more, on weights that were set, around whose steps the observer is called.
  void show_prologue(backend::Observer&);
  /// The graph that the program for these sizes is built from: steps of its plan name nodes of it. Made anew at each call,
  /// for reports.
  ir::Graph program_graph(const std::vector<Shape>& leaves, const PassListener& = {}) const;
  /// What the passes on any sizes tried.
  const std::vector<passes::Remark>& remarks() const { return remarks_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  std::optional<size_t> find_leaf(std::string_view name) const;
  /// The types of all leaves where these are told; names that no leaf has and types that it cannot have are a user error.
  std::vector<Shape> sizes_of(std::string_view where, const std::map<std::string, Shape>& told) const;
  /// States of open sizes take those that the other leaves tell; what nothing tells stays open.
  void bind_states(std::vector<Shape>& leaves) const;
  bool has_open_states() const;
  Team team() const;

  void set_params(const NamedLiterals& values);
  /// Whether these are the values set: the same memory, or equal bytes.
  bool has_weights(const NamedLiterals& values) const;
  /// The instance for these leaf types, which fit the declared ones, with weights as they are now. Weights that are
  /// missing are a user error.
  std::shared_ptr<const Instance> instance(const std::vector<Shape>& leaves);
  /// The same without its weights, which need not be there yet: what plans and reports show. No run takes it.
  std::shared_ptr<const Instance> planned(const std::vector<Shape>& leaves);
  /// A program and what the passes for its sizes tried.
  struct Built {
    std::shared_ptr<const backend::Executable> program;
    std::vector<passes::Remark> remarks;
  };
  /// Without weights; made anew at each call.
  Built build(const std::vector<Shape>& leaves) const;
  /// Changes when weights are set.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  int64_t packed_weight_bytes() const { return weights_.packed_bytes(); }
  /// Before the first run: see WeightStore.
  void share_forms(std::shared_ptr<FormPool> pool) { weights_.share_forms(std::move(pool)); }

  std::vector<Port> inputs, params, results, states;

 private:
  void read_interface();
  void pair_states();
  void run_prologue();
  void require_weights() const;
  ir::Graph bound(const std::vector<Shape>& leaves) const;
  using Instances = std::list<std::shared_ptr<const Instance>>;
  Instances::iterator find_instance(const std::vector<Shape>& leaves);
  std::shared_ptr<Instance> new_instance(const std::vector<Shape>& leaves, Built) const;
  void keep(std::shared_ptr<const Instance>);

  CompileOptions options_;
  std::vector<passes::Remark> remarks_;
  ir::Graph graph_;
  backend::Builder builder_;
  std::unique_ptr<CompiledGraph> prologue_;
  std::vector<std::string> derived_;  // params of the graph that the prologue makes
  uint64_t derived_at_ = 0;           // the version of the weights they were made of
  std::optional<Prepared> prepared_;  // what it was made of
  std::vector<Leaf> leaves_;
  std::vector<Output> outputs_;
  WeightStore weights_;
  std::atomic<uint64_t> version_{1};
  mutable std::mutex mutex_;
  Instances instances_;  // the last used first
};

}  // namespace rlx::runtime
