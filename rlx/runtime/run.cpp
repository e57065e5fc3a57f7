// A run: its values are checked, then a program is chosen for their sizes, then it runs.
#include "rlx/runtime/checks.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

using runtime::lacks_memory;
using runtime::LeafRole;
using runtime::same_type;

namespace {

Error refused(const runtime::Core& core, std::string_view where, const std::vector<std::string>& problems) {
  std::vector<std::string> known;
  for (const Port& p : core.inputs) known.push_back(p.name);
  return invalid(where, ": ", join(problems, "; "), "; graph '", core.graph().name(), "' takes ",
                 known.empty() ? "none" : join(known));
}

}  // namespace

// When nothing changed since the last run, nothing is allocated.
bool CompiledGraph::fits_last(std::span<const Input> inputs) const {
  if (!instance_ || instance_->version != core_->version() || inputs.size() != core_->inputs.size())
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
  use(core_->instance(shapes));
}

void CompiledGraph::prepare(std::span<const Input> inputs) {
  if (!fits_last(inputs)) {
    if (const auto problems = runtime::input_problems(*core_, inputs); !problems.empty())
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
  prepare(inputs);
  check_borrowed(inputs, views_);
  execute(views_);
  return {core_->results, views_};
}

std::vector<runtime::Extent> CompiledGraph::state_extents() const {
  std::vector<runtime::Extent> out;
  for (size_t i = 0; memory().on_host() && i < states_.size(); ++i)
    out.push_back({states_[i].get(), states_[i].get() + states_[i].size(), true});
  return out;
}

// A result of the last run that is an input of this one would be read and written at once. A device has copies of its own.
void CompiledGraph::check_borrowed(std::span<const Input> inputs, std::span<const TensorView> results) const {
  if (!memory().on_host()) return;
  bool apart = true;
  for (const Input& in : inputs) {
    const runtime::Extent mine = runtime::extent_of(in.value);
    for (const TensorView& r : results) apart = apart && !runtime::overlap(mine, runtime::extent_of(r));
    for (const runtime::SharedBlock& s : states_)
      apart = apart && !runtime::overlap(mine, {s.get(), s.get() + s.size()});
  }
  if (!apart)
    throw refused(*core_, "run", runtime::borrowed_problems(*core_, inputs, results, state_extents()));
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
  const auto problems_of_places = [&](std::span<const Shape> types) {
    const std::vector<runtime::Extent> states = state_extents();
    auto problems = runtime::place_problems(*core_, results, types, inputs, states);
    for (std::string& problem : runtime::borrowed_problems(*core_, inputs, {}, states))
      problems.push_back(std::move(problem));
    return problems;
  };
  if (!fits_last(inputs)) {
    if (auto problems = runtime::input_problems(*core_, inputs); !problems.empty()) {
      std::vector<Shape> declared;
      for (const Port& p : core_->results) declared.push_back(p.shape);
      for (std::string& problem : problems_of_places(declared)) problems.push_back(std::move(problem));
      throw refused(*core_, "run", problems);
    }
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
