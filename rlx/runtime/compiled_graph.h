// A graph that is ready to run.
//
//   CompiledGraph f = compile(graph, weights);
//   Outputs y = f.run({{"x", view(data, {2, 4})}});
//   std::span<const float> logits = y.view("logits").as<float>();
//
// The program and its weights are shared by clones; memory of runs is not. One object is for one thread at a time, and
// clones may run at the same time. Inputs are borrowed for the time of the run. Once a size has been run, running it
// again allocates nothing.
#pragma once

#include <memory>

#include "rlx/base/aligned.h"
#include "rlx/ir/interpreter.h"
#include "rlx/runtime/options.h"
#include "rlx/runtime/view.h"

namespace rlx {

namespace backend {
struct Plan;
class Observer;
}  // namespace backend

namespace runtime {
class Core;
struct Instance;
}  // namespace runtime

using ir::NamedLiterals;

/// A named place of a compiled graph; sizes may be symbolic.
struct Port {
  std::string name;
  Shape shape;
};

/// Results of a run, valid until the next run of the same compiled graph.
class Outputs {
 public:
  size_t size() const { return views_.size(); }
  const TensorView& operator[](size_t i) const { return views_[i]; }
  /// By name; a wrong one is a user error that lists the outputs.
  const TensorView& view(std::string_view name) const;
  /// Copies that stay.
  NamedLiterals take() const;

 private:
  friend class CompiledGraph;
  Outputs(std::span<const Port> ports, std::span<const TensorView> views) : ports_(ports), views_(views) {}
  std::span<const Port> ports_;
  std::span<const TensorView> views_;
};

class CompiledGraph {
 public:
  CompiledGraph(const ir::Graph& graph, const NamedLiterals& weights, const CompileOptions& options);
  ~CompiledGraph();
  CompiledGraph(CompiledGraph&&) noexcept;
  CompiledGraph& operator=(CompiledGraph&&) noexcept;
  /// Shares program and weights; states are copied as they are now.
  CompiledGraph clone() const;

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& params() const;
  const std::vector<Port>& outputs() const;
  const std::vector<Port>& states() const;
  /// The graph after the passes that need no sizes; what depends on weights alone is cut off.
  const ir::Graph& graph() const;

  /// Weights are checked against the graph's params; all that is wrong is told in one error and nothing is changed then. The contents are
  /// borrowed where a literal borrows (a mapped file), and seen by all clones.
  void set_param(const std::string& name, const Literal& value);
  void set_params(const NamedLiterals& values);

  /// Everything wrong with the inputs is told in one error, before anything runs.
  Outputs run(std::span<const Input> inputs);
  Outputs run(std::initializer_list<Input> inputs) { return run(std::span(inputs.begin(), inputs.size())); }
  NamedLiterals run(const NamedLiterals& inputs);
  /// Results go to memory of the caller, in the order of outputs(); states are left out.
  void run_into(std::span<const Input> inputs, std::span<const TensorView> results);

  /// The memory of a state: its value now, which may be written between runs.
  TensorView state(std::string_view name);

  /// The plan for inputs of these types; made if there is none yet.
  const backend::Plan& plan(const std::map<std::string, Shape>& inputs = {});
  /// Bytes of weights in forms of their own, shared by all clones.
  int64_t packed_weight_bytes() const;
  /// Called around the steps of later runs; null for none. It must outlive them.
  void observe(backend::Observer* observer) { observer_ = observer; }

  explicit CompiledGraph(std::shared_ptr<runtime::Core> core);

 private:
  void prepare(std::span<const Input> inputs);
  void use(std::shared_ptr<const runtime::Instance> instance);
  void execute();

  std::shared_ptr<runtime::Core> core_;
  std::shared_ptr<const runtime::Instance> instance_;
  AlignedBytes arena_;
  size_t arena_size_ = 0;
  std::vector<AlignedBytes> results_, states_;  // by output, by state
  std::vector<size_t> result_sizes_;
  std::vector<std::byte*> leaves_, places_;  // addresses of leaves and outputs
  std::vector<TensorView> views_;            // of outputs that are no states
  backend::Observer* observer_ = nullptr;
};

CompiledGraph compile(const ir::Graph& graph, const NamedLiterals& weights = {},
                      const CompileOptions& options = {});

}  // namespace rlx
