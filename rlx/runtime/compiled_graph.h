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

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>

#include "rlx/backend/memory.h"
#include "rlx/ir/interpreter.h"
#include "rlx/runtime/background.h"
#include "rlx/runtime/extent.h"
#include "rlx/runtime/options.h"
#include "rlx/runtime/shared_block.h"
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
struct Report;
/// rlx/runtime/attempt.h has it.
template <class T>
class Attempt;

/// A value as bytes with its type beside them, for callers that have no tensors.
struct TypedBytes {
  DType dtype = DType::f32;
  std::vector<std::byte> bytes;
};
/// A value for an input, as bytes with their type.
struct TypedInput {
  std::string_view name;
  std::span<const std::byte> bytes;
  DType dtype = DType::f32;
};

/// A named place of a compiled graph; sizes may be symbolic.
struct Port {
  std::string name;
  Shape shape;
};

/// Results of a run, valid until the next run of the same compiled graph.
class Outputs {
 public:
  /// How many results there are.
  size_t size() const { return views_.size(); }
  /// By place; a wrong one is a user error.
  const TensorView& operator[](size_t i) const;
  /// By name; a wrong one is a user error that lists the outputs.
  const TensorView& view(std::string_view name) const;
  const TensorView& view(std::nullptr_t) const = delete;  // view(0) would be one: outputs[0]
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
  /// What compile() gives.
  CompiledGraph(const ir::Graph& graph, const NamedLiterals& weights, const CompileOptions& options);
  /// Ends when runs in the background have ended, as a move does.
  ~CompiledGraph();
  CompiledGraph(CompiledGraph&&) noexcept;
  CompiledGraph& operator=(CompiledGraph&&) noexcept;
  /// Shares program and weights. States are as they are now, and copied when the clone or this object first runs or
  /// changes them: a fork of a long text costs nothing until it is continued.
  CompiledGraph clone() const;

  /// What runs take, what set_param sets, what runs give and what stays between them, in the order of the graph.
  const std::vector<Port>& inputs() const;
  /// What set_param sets.
  const std::vector<Port>& params() const;
  /// What runs give.
  const std::vector<Port>& outputs() const;
  /// What stays between runs.
  const std::vector<Port>& states() const;
  /// The graph after the passes that need no sizes; what depends on weights alone is cut off.
  const ir::Graph& graph() const;

  /// Weights are checked against the graph's params; all that is wrong is told in one error and nothing is changed then. The contents are
  /// borrowed where a literal borrows (a mapped file), and seen by all clones.
  void set_param(const std::string& name, const Literal& value);
  /// As set_param, several at once.
  void set_params(const NamedLiterals& values);

  /// Everything wrong with the inputs is told in one error, before anything runs. An input may not lie in a result of the last run or in
  /// a state of this object: the run writes there. What a run finds in the data (an index out of
  /// range) ends it where it is: outputs are then undefined, and a state holds the old value, the new one or parts of both.
  /// The object runs again; load_states gives its states a value.
  Outputs run(std::span<const Input> inputs);
  Outputs run(std::initializer_list<Input> inputs) { return run(std::span(inputs.begin(), inputs.size())); }
  NamedLiterals run(const NamedLiterals& inputs);
  /// Results go to memory of the caller, in the order of outputs(); states are left out. No two places may overlap, nor a place and an
  /// input or a state, even where the graph would read first and write then.
  void run_into(std::span<const Input> inputs, std::span<const TensorView> results);

  // Other forms of a run (calls.cpp).

  /// Values by position, in the order of inputs(): no name is looked up.
  Outputs run_slots(std::span<const TensorView> values);
  /// Where the results lie, in the order of outputs(), valid until the next run.
  std::vector<const std::byte*> run_raw(std::span<const Input> inputs);
  /// Values as bytes, of sizes that the graph declares. Reals of 16 and 32 bits become the declared one of these; any other
  /// type must be the declared one. Results come in the declared types, in the order of outputs().
  std::vector<TypedBytes> run_typed(std::span<const TypedInput> inputs);
  /// As set_param, from bytes.
  void set_param_typed(const std::string& name, std::span<const std::byte> bytes, DType dtype);
  /// The error instead of an exception (rlx/runtime/attempt.h); errors of this library's own making are still thrown.
  Attempt<NamedLiterals> try_run(const NamedLiterals& inputs);

  /// Values that stay: one whose name is an input feeds it whenever a run does not give it; one whose name is an
  /// output, or `out0`, `out1`, .., takes its value after every run. Another name is a user error.
  void bind_handle(const std::string& name, Literal value);
  /// The value that is bound now.
  const Literal& read_handle(const std::string& name) const;
  /// The name is bound no more.
  void release_handle(const std::string& name);

  /// (actual, upper): of inputs that are `upper` long along a symbolic first axis only the first `actual` rows count, and the run
  /// has that size. Without effect on inputs of fixed sizes; where others are and none is that long, the run is refused. Stays
  /// until it is set again.
  void set_active_extent(std::optional<std::pair<int64_t, int64_t>> rows);

  // Runs in the background (background.cpp). Until they have ended nothing else may be done with this object, which is
  // refused; runs that were queued have ended when sync_pending returns.

  /// A stop that is asked for ends the run before its next step, also inside a loop, with an error; states are then as that step left them.
  std::future<NamedLiterals> run_async(NamedLiterals inputs, std::stop_token stop = {});
  /// Queues a run behind those queued before; sync_pending waits for all and gives the results of the last. The first
  /// error is thrown there.
  void commit_no_wait(NamedLiterals inputs);
  /// Waits for all queued runs; results of the last.
  NamedLiterals sync_pending();
  /// Results of every set of inputs, in order.
  std::vector<NamedLiterals> run_pipelined(std::span<const NamedLiterals> sets);

  // Runs ahead (ahead.cpp).

  /// Queues a run and returns while a device works on it; inputs may change once the call returns. `finish` waits for the oldest run that was started and
  /// gives its results, valid until as many more were started as may be on their way. Until all are finished nothing but these two may be called.
  void start(std::span<const Input> inputs);
  /// Results of the oldest run that was started.
  Outputs finish();
  /// Runs that may be on their way.
  static constexpr size_t kAhead = 2;

  // A state of open sizes takes those of the first run, beginning with zeros, or those of a value that load_states gives it. It keeps them: a
  // run with others is refused, until load_states sets a value of another size.

  /// The value of a state now, which may be written before the next run. On a device it is a copy, fetched by this
  /// call and sent back by the next run. One that has no size yet is a user error.
  TensorView state(std::string_view name);
  /// All states that have a size as they are now; a clone or another object of the same program may load them.
  NamedLiterals save_states();
  /// Sets states to what save_states gave, or to other values of sizes that they may have and agree on. Everything wrong is told in one
  /// error, and nothing is changed then.
  void load_states(const NamedLiterals& values);
  /// Rows of a state from `rows` on, along `axis`, become zero: what a cache held behind them is forgotten.
  void truncate_state(std::string_view name, int64_t rows, int axis = 0);
  /// Rows of a state along `axis` up to the last that is not all zero: how much of a cache is in use.
  int64_t state_length(std::string_view name, int axis = 0);

  /// The plan for inputs of these types; made if there is none yet.
  const backend::Plan& plan(const std::map<std::string, Shape>& inputs = {});
  /// What was decided, and what it costs (rlx/runtime/report.h): for inputs of these types or, without any, for the sizes of
  /// the last run.
  Report report(const std::map<std::string, Shape>& inputs = {});
  /// Bytes of weights in forms of their own, shared by all clones.
  int64_t packed_weight_bytes() const;
  /// Called around the steps of later runs; null for none. It must outlive them. One that wants every step also sees, before the first of
  /// these runs and whenever weights were set, the steps that run on weights alone.
  void observe(backend::Observer* observer);

  explicit CompiledGraph(std::shared_ptr<runtime::Core> core);
  /// What clones share; for this room.
  runtime::Core& core() const { return *core_; }

 private:
  Outputs run_now(std::span<const Input> inputs);
  NamedLiterals run_now(const NamedLiterals& inputs);
  bool fits_last(std::span<const Input> inputs) const;
  void choose(std::span<const Input> inputs);
  void prepare(std::span<const Input> inputs);
  bool lie_apart(std::span<const Input> inputs, std::span<const TensorView> results);
  std::vector<runtime::Extent> state_extents() const;
  void check_borrowed(std::span<const Input> inputs, std::span<const TensorView> results) const;
  void use(std::shared_ptr<const runtime::Instance> instance);
  void send_inputs(std::span<const Input> inputs);
  void own_state(size_t i);
  std::vector<Shape> with_states(std::vector<Shape> leaves) const;
  void size_states(const runtime::Instance&);
  void give_size(size_t state, const Shape&);
  void place_states();
  void execute(std::span<const TensorView> results);
  const backend::Memory& memory() const;
  using RunPlain = std::function<std::span<const TensorView>(std::span<const Input>)>;
  void run_extended(std::span<const Input> inputs, const RunPlain& run);
  void run_into_now(std::span<const Input> inputs, std::span<const TensorView> results);
  void cut_to_active(std::vector<Input>& inputs) const;
  void queue_run(std::span<const TensorView> results);
  void check_alone(std::string_view where) const;
  void check_idle(std::string_view where) const;

  /// A run that was started: memory of its own for inputs and results.
  struct Started {
    std::vector<backend::Block> inputs, results;
    std::vector<TensorView> views;
    uint64_t mark = 0;
  };

  runtime::Background background_;  // before all that its runs use: a move waits for them first
  std::shared_ptr<runtime::Core> core_;
  std::shared_ptr<const runtime::Instance> instance_;
  std::unique_ptr<backend::Queue> queue_;
  backend::Block arena_;
  std::vector<backend::Block> results_;       // by output
  std::vector<runtime::SharedBlock> states_;  // shared with clones until one of them writes
  std::vector<Shape> state_shapes_;           // as they are now
  bool chooses_anew_ = false;                 // the last program may be for other sizes of the states
  std::vector<bool> state_is_seen_;           // the caller may have a view of it since the last run
  // On a device: its copies of inputs, and what the caller sees of results and states.
  std::vector<backend::Block> inputs_, result_copies_, state_copies_;
  std::vector<bool> state_is_out_;           // its copy may have been written
  std::vector<std::byte*> leaves_, places_;  // addresses of leaves and outputs
  std::vector<TensorView> views_;            // of outputs that are no states
  std::vector<runtime::Extent> extents_;     // room to compare places
  backend::Observer* observer_ = nullptr;
  bool prologue_is_wanted_ = false;  // by an observer that has not seen it
  const std::stop_token* stop_ = nullptr;
  std::map<std::string, Literal, std::less<>> handles_;
  std::optional<std::pair<int64_t, int64_t>> active_rows_;
  std::shared_future<NamedLiterals> pending_;
  std::vector<Started> started_;    // kAhead places, in turn
  uint64_t starts_ = 0, ends_ = 0;  // runs that were started and finished
};

/// A graph ready to run, on the device and by the rules of `options`. `weights` are values of its params by name; those that
/// are not given are set later, by set_param. What is wrong with the graph or a weight is a user error.
CompiledGraph compile(const ir::Graph& graph, const NamedLiterals& weights = {},
                      const CompileOptions& options = {});

}  // namespace rlx
