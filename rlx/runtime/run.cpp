// A run: its values are checked, then a program is chosen for their sizes, then it runs.
#include <algorithm>
#include <cstring>

#include "rlx/runtime/checks.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

using runtime::Extent;
using runtime::extent_of;
using runtime::lacks_memory;
using runtime::LeafRole;
using runtime::overlap;
using runtime::OwnMemory;
using runtime::same_type;

namespace {

Error refused(const runtime::Core& core, std::string_view where, const std::vector<std::string>& problems) {
  std::vector<std::string> known;
  for (const Port& p : core.inputs) known.push_back(p.name);
  return invalid(where, ": ", join(problems, "; "), "; graph '", core.graph().name(), "' takes ",
                 known.empty() ? "none" : join(known));
}

std::vector<OwnMemory> memory_of_states(const std::vector<Port>& states, const std::vector<Extent>& at) {
  std::vector<OwnMemory> out;
  for (size_t i = 0; i < at.size(); ++i) out.push_back({states[i].name, at[i], true});
  return out;
}

}  // namespace

// When nothing changed since the last run, nothing is allocated.
bool CompiledGraph::fits_last(std::span<const Input> inputs) const {
  if (!instance_ || instance_->version != core_->version() || inputs.size() != core_->inputs.size() ||
      prologue_is_wanted_ || chooses_anew_)
    return false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto leaf = core_->find_leaf(inputs[k].name);
    if (!leaf || core_->leaves()[*leaf].role != LeafRole::input) return false;
    if (!same_type(inputs[k].value, instance_->leaves[*leaf]) || lacks_memory(inputs[k].value)) return false;
    for (size_t j = 0; j < k; ++j) {
      if (inputs[j].name == inputs[k].name) return false;
    }
  }
  return true;
}

// The program for these sizes.
void CompiledGraph::choose(std::span<const Input> inputs) {
  std::vector<Shape> shapes;
  for (const auto& leaf : core_->leaves()) shapes.push_back(leaf.shape);
  for (const Input& in : inputs) shapes[*core_->find_leaf(in.name)] = in.value.shape();
  const auto chosen = core_->instance(with_states(shapes));
  size_states(*chosen);
  use(chosen);
  if (observer_ == nullptr || !observer_->wants_every_step()) return;
  core_->show_prologue(*observer_);
  prologue_is_wanted_ = false;
}

void CompiledGraph::prepare(std::span<const Input> inputs) {
  if (!fits_last(inputs)) {
    if (const auto problems = runtime::input_problems(*core_, inputs, state_shapes_); !problems.empty())
      throw refused(*core_, "run", problems);
    choose(inputs);
  }
  send_inputs(inputs);
}

Outputs CompiledGraph::run(std::span<const Input> inputs) {
  check_idle("run");
  return run_now(inputs);
}

Outputs CompiledGraph::run_now(std::span<const Input> inputs) {
  if (!handles_.empty() || active_rows_) [[unlikely]] {
    run_extended(inputs, [&](std::span<const Input> all) {
      run_now(all);
      return std::span<const TensorView>(views_);
    });
    return {core_->results, views_};
  }
  check_borrowed(inputs, {});
  prepare(inputs);
  execute(views_);
  return {core_->results, views_};
}

std::vector<Extent> CompiledGraph::state_extents() const {
  std::vector<Extent> out;
  for (size_t i = 0; memory().on_host() && i < states_.size(); ++i)
    out.push_back({states_[i].get(), states_[i].get() + states_[i].size(), true});
  return out;
}

// A result of the last run that is an input of this one would be read and written at once, or given back for one of another size, so
// this comes before a program is chosen. A device has copies of its own. `more`: places of results beside the usual ones.
void CompiledGraph::check_borrowed(std::span<const Input> inputs, std::span<const TensorView> more) const {
  if (!memory().on_host()) return;
  bool apart = true;
  for (const Input& in : inputs) {
    const Extent mine = extent_of(in.value);
    for (const backend::Block& b : results_) apart = apart && !overlap(mine, {b.get(), b.get() + b.size()});
    for (const TensorView& v : more) apart = apart && !overlap(mine, extent_of(v));
    for (const runtime::SharedBlock& s : states_)
      apart = apart && !overlap(mine, {s.get(), s.get() + s.size()});
  }
  if (apart) return;
  std::vector<OwnMemory> own = memory_of_states(core_->states, state_extents());
  for (size_t i = 0; i < results_.size(); ++i)
    own.push_back({core_->outputs()[i].name, {results_[i].get(), results_[i].get() + results_[i].size()}});
  for (size_t i = 0; i < more.size(); ++i) own.push_back({core_->results[i].name, extent_of(more[i])});
  auto problems = runtime::input_problems(*core_, inputs, state_shapes_);
  for (std::string& problem : runtime::borrowed_problems(inputs, own)) problems.push_back(std::move(problem));
  throw refused(*core_, "run", problems);
}

NamedLiterals CompiledGraph::run(const NamedLiterals& inputs) {
  check_idle("run");
  return run_now(inputs);
}

NamedLiterals CompiledGraph::run_now(const NamedLiterals& inputs) {
  std::vector<Input> list;
  for (const auto& [name, value] : inputs) list.push_back({name, view(value)});
  return run_now(std::span<const Input>(list)).take();
}

// Steps read while others write, in an order that the caller does not know: what overlaps would be overwritten too early.
bool CompiledGraph::lie_apart(std::span<const Input> inputs, std::span<const TensorView> results) {
  extents_.clear();
  const auto add = [&](const std::byte* data, size_t bytes, bool is_written) {
    if (bytes > 0) extents_.push_back({data, data + bytes, is_written});
  };
  for (const TensorView& v : results) add(v.data, v.bytes(), true);
  for (const Input& in : inputs) add(in.value.data, in.value.bytes(), false);
  for (size_t i = 0; memory().on_host() && i < states_.size(); ++i)
    add(states_[i].get(), states_[i].size(), true);
  return runtime::lie_apart(extents_);
}

void CompiledGraph::run_into(std::span<const Input> inputs, std::span<const TensorView> results) {
  check_idle("run_into");
  if (!handles_.empty() || active_rows_) [[unlikely]] {
    run_extended(inputs, [&](std::span<const Input> all) {
      run_into_now(all, results);
      return results;
    });
  } else {
    run_into_now(inputs, results);
  }
}

void CompiledGraph::run_into_now(std::span<const Input> inputs, std::span<const TensorView> results) {
  std::vector<Input> list;
  std::vector<backend::Block> copies;
  const auto problems_of_places = [&](std::span<const Shape> types) {
    const std::vector<Extent> states = state_extents();
    auto problems = runtime::place_problems(*core_, results, types, inputs, states);
    for (std::string& problem : runtime::borrowed_problems(inputs, memory_of_states(core_->states, states)))
      problems.push_back(std::move(problem));
    return problems;
  };
  if (!fits_last(inputs)) {
    if (auto problems = runtime::input_problems(*core_, inputs, state_shapes_); !problems.empty()) {
      std::vector<Shape> declared;
      for (const Port& p : core_->results) declared.push_back(p.shape);
      for (std::string& problem : problems_of_places(declared)) problems.push_back(std::move(problem));
      throw refused(*core_, "run", problems);
    }
    // Memory of the last results is given back where larger ones are made.
    list.assign(inputs.begin(), inputs.end());
    for (Input& in : list) {
      const bool inside = std::any_of(results_.begin(), results_.end(), [&](const backend::Block& b) {
        return overlap(extent_of(in.value), {b.get(), b.get() + b.size()});
      });
      if (!inside || !memory().on_host()) continue;
      copies.emplace_back(backend::host_memory(), in.value.bytes());
      std::memcpy(copies.back().get(), in.value.data, in.value.bytes());
      in.value.data = copies.back().get();
    }
    inputs = list;
    choose(inputs);
  }
  bool fits = results.size() == views_.size();
  for (size_t i = 0; fits && i < results.size(); ++i)
    fits = same_type(results[i], views_[i]) && !lacks_memory(results[i]);
  if (!fits || !lie_apart(inputs, results)) {
    std::vector<Shape> types;
    for (const TensorView& v : views_) types.push_back(v.shape());
    throw invalid("run_into: ", join(problems_of_places(types), "; "));
  }
  send_inputs(inputs);
  execute(results);
}

}  // namespace rlx
