#include "rlx/runtime/checks.h"

#include <algorithm>

#include "rlx/ir/call.h"

namespace rlx::runtime {
namespace {

using Problems = std::vector<std::string>;

// The states that have got their sizes, for who wonders whence a size comes.
std::string sizes_kept(const Core& core, std::span<const Shape> states) {
  std::vector<std::string> list;
  for (size_t i = 0; i < states.size(); ++i) {
    if (!core.states[i].shape.is_static() && states[i].is_static())
      list.push_back(
          cat("state '", core.states[i].name, "' is ", states[i], " until load_states sets another size"));
  }
  return list.empty() ? "" : cat("; ", join(list, "; "));
}

// The types of all leaves where those of states are told.
std::vector<Shape> leaves_with(const Core& core, std::span<const Shape> states) {
  std::vector<Shape> shapes;
  for (const auto& leaf : core.leaves())
    shapes.push_back(leaf.state < 0 ? leaf.shape : states[size_t(leaf.state)]);
  return shapes;
}

// What sizes these leaves disagree on; empty when they do not.
std::string size_problem(const Core& core, std::span<const Shape> leaves) {
  constexpr std::string_view kWhere = "run: ";
  try {
    ir::solve_sizes(core.graph(), leaves);
    return {};
  } catch (const Error& e) {
    const std::string& text = e.message();
    return text.starts_with(kWhere) ? text.substr(kWhere.size()) : text;
  }
}

// What sizes the inputs that fit by themselves disagree on, among each other or with states; the others count as not given.
void add_sizes(const Core& core, std::span<const Input> inputs, const std::vector<bool>& fit,
               std::span<const Shape> states, Problems& problems) {
  std::vector<Shape> shapes = leaves_with(core, states);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (fit[k]) shapes[*core.find_leaf(inputs[k].name)] = inputs[k].value.shape();
  }
  if (const std::string wrong = size_problem(core, shapes); !wrong.empty())
    problems.push_back(cat(wrong, sizes_kept(core, states)));
  if (!problems.empty()) return;
  core.bind_states(shapes);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto& leaf = core.leaves()[i];
    if (leaf.role == LeafRole::state && !shapes[i].is_static())
      problems.push_back(cat("state '", leaf.name, "' is ", shapes[i], ", and nothing tells ",
                             join(shapes[i].dynamic_symbols()), "; set it with load_states"));
  }
}

}  // namespace

bool same_type(const TensorView& v, const Shape& s) {
  if (v.dtype != s.dtype() || v.rank != s.rank()) return false;
  for (int i = 0; i < v.rank; ++i) {
    if (s.dim(i) != Dim(v.dims[i])) return false;
  }
  return true;
}

bool same_type(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

std::vector<std::string> input_problems(const Core& core, std::span<const Input> inputs,
                                        std::span<const Shape> states) {
  Problems problems;
  std::vector<std::string> known;
  std::vector<int> given(core.leaves().size(), 0);
  std::vector<bool> fit(inputs.size(), false);
  for (const Port& p : core.inputs) known.push_back(p.name);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Input& in = inputs[k];
    const auto leaf = core.find_leaf(in.name);
    if (leaf && core.leaves()[*leaf].role == LeafRole::state) {
      problems.push_back(cat("'", in.name,
                             "' is a state, which runs keep; set it with load_states or state(\"", in.name,
                             "\")"));
      continue;
    }
    if (!leaf || core.leaves()[*leaf].role != LeafRole::input) {
      const std::string near = nearest_name(std::string(in.name), known);
      problems.push_back(
          cat("'", in.name, "' is not an input", near.empty() ? "" : cat("; did you mean '", near, "'")));
      continue;
    }
    if (given[*leaf]++ == 1) problems.push_back(cat("'", in.name, "' is given twice"));
    const Shape& s = core.leaves()[*leaf].shape;
    fit[k] = given[*leaf] == 1 && ir::may_be(s, in.value.shape());
    if (!ir::may_be(s, in.value.shape()))
      problems.push_back(cat("'", in.name, "' is ", s, ", the value is ", in.value.shape()));
    if (lacks_memory(in.value)) problems.push_back(cat("'", in.name, "' has no memory"));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& leaf = core.leaves()[i];
    if (given[i] == 0 && leaf.role == LeafRole::input)
      problems.push_back(cat("input '", leaf.name, "' (", leaf.shape, ") is missing"));
  }
  add_sizes(core, inputs, fit, states, problems);
  return problems;
}

std::string state_problem(const Core& core, std::span<const Shape> states) {
  return size_problem(core, leaves_with(core, states));
}

std::vector<std::string> borrowed_problems(std::span<const Input> inputs, std::span<const OwnMemory> own) {
  Problems problems;
  for (const Input& in : inputs) {
    for (const OwnMemory& m : own) {
      if (!overlap(extent_of(in.value), m.extent)) continue;
      problems.push_back(cat("the memory of input '", in.name, "' is that of ",
                             m.is_state ? "state '" : "output '", m.name, "', which the run writes; ",
                             m.is_state ? "copy it (save_states)"
                                        : "copy it (Outputs::take), give results places of their own "
                                          "(run_into), or make the two a state"));
    }
  }
  return problems;
}

std::vector<std::string> place_problems(const Core& core, std::span<const TensorView> places,
                                        std::span<const Shape> types, std::span<const Input> inputs,
                                        std::span<const Extent> states) {
  Problems problems;
  if (places.size() != types.size())
    problems.push_back(cat(places.size(), " places for ", types.size(), " outputs"));
  const auto name = [&](size_t i) {
    return i < types.size() ? cat("output '", core.results[i].name, "'") : cat("place ", i);
  };
  bool overlaps = false;
  for (size_t i = 0; i < places.size(); ++i) {
    const TensorView& place = places[i];
    if (i < types.size() && !ir::may_be(types[i], place.shape()))
      problems.push_back(cat(name(i), " is ", types[i], ", its place is ", place.shape()));
    if (lacks_memory(place)) {
      problems.push_back(cat(name(i), " has no memory, it needs ", place.bytes(), " bytes"));
      continue;
    }
    std::vector<std::string> others;
    const Extent mine = extent_of(place);
    for (size_t k = 0; k < i; ++k) {
      if (places[k].data && overlap(mine, extent_of(places[k]))) others.push_back(name(k));
    }
    for (const Input& in : inputs) {
      if (in.value.data && overlap(mine, extent_of(in.value))) others.push_back(cat("input '", in.name, "'"));
    }
    for (size_t k = 0; k < states.size(); ++k) {
      if (overlap(mine, states[k])) others.push_back(cat("state '", core.states[k].name, "'"));
    }
    overlaps = overlaps || !others.empty();
    if (!others.empty())
      problems.push_back(cat("the memory of ", name(i), " is also that of ", join(others)));
  }
  if (overlaps) problems.push_back("every output needs memory that nothing else uses");
  return problems;
}

bool lie_apart(std::span<Extent> extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  const std::byte *any_end = nullptr, *written_end = nullptr;  // of those so far
  for (const Extent& e : extents) {
    if (e.begin < (e.is_written ? any_end : written_end)) return false;
    any_end = std::max(any_end, e.end);
    if (e.is_written) written_end = std::max(written_end, e.end);
  }
  return true;
}

}  // namespace rlx::runtime
