// Values that stay between runs: their memory and sizes, and what a caller does with them.
#include <algorithm>
#include <cstring>

#include "rlx/ir/call.h"
#include "rlx/runtime/checks.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/wanted_for.h"

namespace rlx {

using runtime::Instance;

// A state that another clone holds is copied before it is written.
void CompiledGraph::own_state(size_t i) {
  if (states_[i].alone()) return;
  backend::Block own(memory(), states_[i].size());
  memory().copy(own.get(), states_[i].get(), own.size());
  states_[i] = runtime::SharedBlock(std::move(own));
  place_states();
}

// The leaves of a run, with the states as they are now.
std::vector<Shape> CompiledGraph::with_states(std::vector<Shape> leaves) const {
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (const int s = core_->leaves()[i].state; s >= 0 && !leaves[i].is_static())
      leaves[i] = state_shapes_[size_t(s)];
  }
  core_->bind_states(leaves);
  return leaves;
}

// Those of open sizes get what the run says, and are zero.
void CompiledGraph::size_states(const Instance& instance) {
  if (!chooses_anew_) return;
  for (size_t i = 0; i < core_->leaves().size(); ++i) {
    const int s = core_->leaves()[i].state;
    if (s >= 0 && !state_shapes_[size_t(s)].is_static()) give_size(size_t(s), instance.leaves[i]);
  }
  chooses_anew_ = false;
}

void CompiledGraph::give_size(size_t i, const Shape& shape) {
  backend::Block block =
      runtime::wanted_for([&] { return cat("state '", core_->states[i].name, "'"); },
                          [&] { return backend::Block(memory(), size_t(shape.size_bytes())); });
  memory().clear(block.get(), block.size());
  states_[i] = runtime::SharedBlock(std::move(block));
  state_shapes_[i] = shape;
  state_copies_[i] = {};
  state_is_out_[i] = false;
}

// Where a run finds the states and leaves them.
void CompiledGraph::place_states() {
  for (size_t i = 0; i < core_->leaves().size(); ++i) {
    if (const int s = core_->leaves()[i].state; s >= 0) leaves_[i] = states_[size_t(s)].get();
  }
  for (size_t i = 0; i < core_->outputs().size(); ++i) {
    if (const int s = core_->outputs()[i].state; s >= 0) places_[i] = states_[size_t(s)].get();
  }
}

TensorView CompiledGraph::state(std::string_view name) {
  check_idle("state");
  std::vector<std::string> known;
  for (size_t i = 0; i < core_->states.size(); ++i) {
    const Port& p = core_->states[i];
    known.push_back(p.name);
    if (p.name != name) continue;
    const Shape& shape = state_shapes_[i];
    if (!shape.is_static())
      throw invalid("state: '", name, "' is ", shape,
                    " and has no size yet; a run or load_states gives it one");
    std::vector<int64_t> dims;
    for (const Dim d : shape.dims()) dims.push_back(d.value());
    if (memory().on_host()) {
      own_state(i);
      state_is_seen_[i] = true;
      return view_bytes(p.shape.dtype(), states_[i].get(), dims);
    }
    if (!state_copies_[i]) state_copies_[i] = backend::Block(memory().staging(), states_[i].size());
    if (!state_is_out_[i]) memory().download(state_copies_[i].get(), states_[i].get(), states_[i].size());
    state_is_out_[i] = true;
    return view_bytes(p.shape.dtype(), state_copies_[i].get(), dims);
  }
  throw invalid("state: there is no state '", name, "'; there are ", known.empty() ? "none" : join(known));
}

NamedLiterals CompiledGraph::save_states() {
  NamedLiterals out;
  for (size_t i = 0; i < states().size(); ++i) {
    const Port& p = states()[i];
    if (!state_shapes_[i].is_static()) continue;
    const TensorView v = state(p.name);
    out.emplace(p.name, Literal::copy_of(v.shape(), {v.data, v.bytes()}));
  }
  return out;
}

void CompiledGraph::load_states(const NamedLiterals& values) {
  check_idle("load_states");
  std::vector<std::string> problems;
  std::vector<Shape> next = state_shapes_;
  for (const auto& [name, value] : values) {
    const auto port = std::ranges::find(states(), name, &Port::name);
    if (port == states().end()) {
      problems.push_back(cat("there is no state '", name, "'"));
    } else if (!ir::may_be(port->shape, value.shape())) {
      problems.push_back(cat("state '", name, "' is ", port->shape, ", the value is ", value.shape()));
    } else {
      next[size_t(port - states().begin())] = value.shape();
    }
  }
  if (problems.empty()) {
    if (std::string wrong = runtime::state_problem(*core_, next); !wrong.empty()) problems.push_back(wrong);
  }
  if (!problems.empty()) throw invalid("load_states: ", join(problems, "; "));
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i] == state_shapes_[i]) continue;
    give_size(i, next[i]);
    chooses_anew_ = true;
  }
  for (const auto& [name, value] : values) {
    if (!value.bytes().empty()) std::memcpy(state(name).data, value.bytes().data(), value.bytes().size());
  }
}

void CompiledGraph::truncate_state(std::string_view name, int64_t rows, int axis) {
  const TensorView v = state(name);
  if (!normalize_axis(axis, v.rank))
    throw invalid("truncate_state: axis ", axis, " of '", name, "', which is ", v.shape());
  const AxisView around = axis_view(v.shape(), axis);
  if (rows < 0 || rows > around.length)
    throw invalid("truncate_state: ", rows, " rows of '", name, "', which is ", v.shape(), "; 0 to ",
                  around.length, " expected");
  const size_t row = size_t(around.inner) * dtype_size(v.dtype);
  for (int64_t o = 0; o < around.outer; ++o) {
    std::byte* const first = v.data + size_t(o * around.length + rows) * row;
    if (rows < around.length) std::memset(first, 0, size_t(around.length - rows) * row);
  }
}

int64_t CompiledGraph::state_length(std::string_view name, int axis) {
  const TensorView v = state(name);
  if (!normalize_axis(axis, v.rank))
    throw invalid("state_length: axis ", axis, " of '", name, "', which is ", v.shape());
  const AxisView around = axis_view(v.shape(), axis);
  const size_t row = size_t(around.inner) * dtype_size(v.dtype);
  const auto used = [&](int64_t r) {
    for (int64_t o = 0; o < around.outer; ++o) {
      const std::byte* const at = v.data + size_t(o * around.length + r) * row;
      if (std::any_of(at, at + row, [](std::byte b) { return b != std::byte(0); })) return true;
    }
    return false;
  };
  int64_t length = around.length;
  while (length > 0 && !used(length - 1)) --length;
  return length;
}

}  // namespace rlx
