#include "rlx/runtime/compiled_graph.h"

#include <algorithm>

#include "rlx/runtime/core.h"
#include "rlx/runtime/state_memory.h"
#include "rlx/runtime/wanted_for.h"

namespace rlx {

using runtime::Instance;
using runtime::LeafRole;

namespace {

// A view has room for so many sizes; told when it is compiled, by name.
void check_ranks(const runtime::Core& core) {
  std::vector<std::string> problems;
  const auto check = [&](const std::string& name, const Shape& s) {
    if (s.rank() > TensorView::kMaxRank)
      problems.push_back(cat("'", name, "' is ", s, ", ", s.rank(), " axes"));
  };
  for (const auto& leaf : core.leaves()) {
    if (leaf.role != LeafRole::param) check(leaf.name, leaf.shape);
  }
  for (const auto& output : core.outputs()) check(output.name, output.shape);
  if (!problems.empty())
    throw invalid("compile: ", join(problems, "; "), "; inputs and outputs have at most ",
                  TensorView::kMaxRank, "; reshape them to fewer");
}

template <class Purpose>
backend::Block room_for(const backend::Memory& memory, size_t bytes, const Purpose& purpose) {
  return runtime::wanted_for(purpose, [&] { return backend::Block(memory, bytes); });
}

}  // namespace

const TensorView& Outputs::operator[](size_t i) const {
  if (i >= views_.size())
    throw invalid("outputs: there is no output ", i, "; there are ", views_.size(), ", counted from 0");
  return views_[i];
}

const TensorView& Outputs::view(std::string_view name) const {
  for (size_t i = 0; i < ports_.size(); ++i)
    if (ports_[i].name == name) return views_[i];
  std::vector<std::string> known;
  for (const Port& p : ports_) known.push_back(p.name);
  throw invalid("outputs: there is no output '", name, "'; there are ", join(known));
}

NamedLiterals Outputs::take() const {
  NamedLiterals out;
  for (size_t i = 0; i < ports_.size(); ++i)
    out.emplace(ports_[i].name, Literal::copy_of(views_[i].shape(), {views_[i].data, views_[i].bytes()}));
  return out;
}

CompiledGraph::CompiledGraph(const ir::Graph& graph, const NamedLiterals& weights,
                             const CompileOptions& options)
    : CompiledGraph(std::make_shared<runtime::Core>(graph, weights, options)) {}

CompiledGraph::CompiledGraph(std::shared_ptr<runtime::Core> core)
    : core_(std::move(core)), queue_(core_->builder().backend().make_queue()) {
  check_ranks(*core_);
  std::vector<size_t> state_bytes;
  for (const Port& p : core_->states) {
    state_shapes_.push_back(p.shape);
    state_bytes.push_back(p.shape.is_static() ? size_t(p.shape.size_bytes()) : 0);
  }
  chooses_anew_ = core_->has_open_states();
  states_ = runtime::cleared_states(memory(), state_bytes);
  state_is_seen_.resize(states_.size(), false);
  state_copies_.resize(states_.size());
  state_is_out_.resize(states_.size(), false);
  results_.resize(core_->outputs().size());
  result_copies_.resize(core_->outputs().size());
  inputs_.resize(core_->leaves().size());
  leaves_.resize(core_->leaves().size(), nullptr);
  places_.resize(core_->outputs().size(), nullptr);
}

// Memory of runs that were started and not finished is given back when the queue has done with it.
CompiledGraph::~CompiledGraph() {
  background_.wait();
  if (!queue_ || starts_ == ends_) return;
  try {
    queue_->wait();
  } catch (const Error&) {
  }
}
CompiledGraph::CompiledGraph(CompiledGraph&&) noexcept = default;
CompiledGraph& CompiledGraph::operator=(CompiledGraph&&) noexcept = default;

const backend::Memory& CompiledGraph::memory() const { return core_->builder().backend().memory(); }

CompiledGraph CompiledGraph::clone() const {
  check_idle("clone");
  CompiledGraph out(core_);
  out.state_shapes_ = state_shapes_;
  for (size_t i = 0; i < states_.size(); ++i) {
    const size_t bytes = states_[i].size();
    const bool is_copied = state_is_out_[i] || state_is_seen_[i];
    if (is_copied && out.states_[i].size() != bytes)
      out.states_[i] = runtime::SharedBlock(backend::Block(memory(), bytes));
    if (state_is_out_[i]) {
      memory().upload(out.states_[i].get(), state_copies_[i].get(), bytes);
    } else if (state_is_seen_[i]) {  // its view may still be written
      memory().copy(out.states_[i].get(), states_[i].get(), bytes);
    } else {
      out.states_[i] = states_[i];
    }
  }
  return out;
}

const std::vector<Port>& CompiledGraph::inputs() const { return core_->inputs; }
const std::vector<Port>& CompiledGraph::params() const { return core_->params; }
const std::vector<Port>& CompiledGraph::outputs() const { return core_->results; }
const std::vector<Port>& CompiledGraph::states() const { return core_->states; }
const ir::Graph& CompiledGraph::graph() const { return core_->graph(); }
int64_t CompiledGraph::packed_weight_bytes() const { return core_->packed_weight_bytes(); }
void CompiledGraph::set_param(const std::string& name, const Literal& value) { set_params({{name, value}}); }
void CompiledGraph::set_params(const NamedLiterals& values) {
  check_alone("set_param");
  core_->set_params(values);
}
void CompiledGraph::observe(backend::Observer* observer) {
  check_alone("observe");
  observer_ = observer;
  prologue_is_wanted_ = observer != nullptr && observer->wants_every_step();
}

// On the host inputs are read where they are; a device gets copies, and the states that the caller may have changed.
void CompiledGraph::send_inputs(std::span<const Input> inputs) {
  const bool on_host = memory().on_host();
  for (size_t i = 0; i < states_.size(); ++i) own_state(i);
  state_is_seen_.assign(state_is_seen_.size(), false);
  for (const Input& in : inputs) {
    const size_t leaf = *core_->find_leaf(in.name);
    if (on_host) {
      leaves_[leaf] = in.value.data;
      continue;
    }
    const size_t bytes = in.value.bytes();
    if (!inputs_[leaf] || bytes > inputs_[leaf].size())
      inputs_[leaf] = room_for(memory(), bytes, [&] { return cat("input '", in.name, "'"); });
    leaves_[leaf] = inputs_[leaf].get();
    if (instance_->program->reads_leaf(leaf)) queue_->upload(leaves_[leaf], in.value.data, bytes);
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!state_is_out_[i]) continue;
    queue_->upload(states_[i].get(), state_copies_[i].get(), states_[i].size());
    state_is_out_[i] = false;
  }
}

void CompiledGraph::use(std::shared_ptr<const Instance> instance) {
  if (starts_ != ends_) queue_->wait();  // memory may be given back
  instance_ = std::move(instance);
  if (const size_t bytes = instance_->program->arena_bytes(); !arena_ || bytes > arena_.size()) {
    arena_ = {};
    arena_ = room_for(memory(), bytes, [&] { return cat("the arena of graph '", graph().name(), "'"); });
  }
  views_.clear();
  for (size_t i = 0; i < core_->leaves().size(); ++i) {
    const auto& leaf = core_->leaves()[i];
    // Steps do not write to their operands, so a borrowed weight stays as it is.
    if (leaf.role == LeafRole::param) leaves_[i] = const_cast<std::byte*>(instance_->weights[i].get());
  }
  place_states();
  for (size_t i = 0; i < core_->outputs().size(); ++i) {
    const auto& output = core_->outputs()[i];
    if (output.state >= 0) continue;
    const Shape& shape = instance_->outputs[i];
    const auto bytes = size_t(shape.size_bytes());
    if (!results_[i] || bytes > results_[i].size())
      results_[i] = room_for(memory(), bytes, [&] { return cat("output '", output.name, "'"); });
    std::byte* seen = results_[i].get();
    if (!memory().on_host()) {
      if (!result_copies_[i] || bytes > result_copies_[i].size())
        result_copies_[i] = backend::Block(memory().staging(), bytes);
      seen = result_copies_[i].get();
    }
    std::vector<int64_t> dims;
    for (const Dim d : shape.dims()) dims.push_back(d.value());
    views_.push_back(view_bytes(shape.dtype(), seen, dims));
  }
}

// The host writes results where the caller wants them; a device into its own memory, from where they are fetched.
void CompiledGraph::execute(std::span<const TensorView> results) {
  queue_run(results);
  if (!memory().on_host()) queue_->wait();
}

void CompiledGraph::queue_run(std::span<const TensorView> results) {
  const bool on_host = memory().on_host();
  for (size_t i = 0, k = 0; i < places_.size(); ++i) {
    if (core_->outputs()[i].state < 0) places_[i] = on_host ? results[k++].data : results_[i].get();
  }
  queue_->run(*instance_->program, {.team = core_->team(),
                                    .leaves = leaves_.data(),
                                    .outputs = places_.data(),
                                    .arena = arena_.get(),
                                    .packed = instance_->packed.data(),
                                    .observer = observer_,
                                    .stop = stop_});
  if (on_host) return;
  for (size_t i = 0, k = 0; i < places_.size(); ++i) {
    if (core_->outputs()[i].state >= 0) continue;
    queue_->download(results[k].data, results_[i].get(), results[k].bytes());
    ++k;
  }
}

const backend::Plan& CompiledGraph::plan(const std::map<std::string, Shape>& inputs) {
  check_alone("plan");
  const auto planned = core_->planned(with_states(core_->sizes_of("plan", inputs)));
  chooses_anew_ = core_->has_open_states();
  if (planned->version > 0 && planned != instance_) {
    use(planned);
  } else {
    instance_ = planned;  // without weights: the next run fetches them
  }
  return instance_->program->plan();
}

CompiledGraph compile(const ir::Graph& graph, const NamedLiterals& weights, const CompileOptions& options) {
  return {graph, weights, options};
}

}  // namespace rlx
