// GraphAssembly, second part: outputs, lifetimes, sharing of places, offsets.
#include <algorithm>

#include "rlx/backend/choosing.h"
#include "rlx/backend/graph_assembly.h"
#include "rlx/backend/grouping.h"
#include "rlx/ir/leaves.h"
#include "rlx/passes/memory.h"

namespace rlx::backend {

GraphAssembly::GraphAssembly(const Builder& builder, const ir::Graph& graph, const Interface& interface)
    : Assembly(builder.backend(), builder.threads()),
      builder_(builder),
      graph_(graph),
      interface_(interface) {
  fixed_leaves_ = interface.fixed;
  plan_.graph = graph.name();
}

std::shared_ptr<const Executable> GraphAssembly::run() {
  find_parts();
  int leaf = 0;
  for (const ir::Node* n : graph_.nodes()) {
    if (!n->op->traits.leaf) {
      add_node(*n);
      continue;
    }
    const Shape& shape = n->shapes[0];
    const int buffer = new_buffer(BufferKind::leaf, static_cast<const ir::NamedLeaf*>(n->attrs.get())->name,
                                  shape.size_bytes(), leaf++);
    places_[n->result()] = {.buffer = buffer, .shape = shape, .layout = Layout::row_major(shape.dims())};
  }
  add_outputs();
  find_lifetimes();
  copy_unsafe_donations();
  share_places();
  place();
  bind_addresses(graph_.leaves().size(), graph_.outputs().size());
  return out_;
}

// An output is written where the caller wants it when one step makes the whole of it and it is an output only once;
// otherwise it is copied there at the end.
bool GraphAssembly::can_be_output(const Place& p, int output) const {
  const Plan::Buffer& b = plan_.buffers[size_t(p.buffer)];
  if (b.kind != BufferKind::activation || p.offset != 0) return false;
  if (b.bytes != p.shape.size_bytes() || !p.layout.is_row_major(p.shape.dims())) return false;
  for (int i = 0; i < output; ++i) {
    if (output_buffers_[size_t(i)] == p.buffer) return false;
  }
  return true;
}

void GraphAssembly::add_outputs() {
  const auto names = graph_.output_names();
  std::vector<std::pair<Place, Place>> copies;
  for (size_t i = 0; i < names.size(); ++i) {
    const Place from = places_.at(graph_.outputs()[i]);
    if (can_be_output(from, int(i))) {
      Plan::Buffer& b = plan_.buffers[size_t(from.buffer)];
      b.kind = BufferKind::output;
      b.index = int(i);
      b.name = names[i];
      output_buffers_.push_back(from.buffer);
      continue;
    }
    const int buffer = new_buffer(BufferKind::output, names[i], from.shape.size_bytes(), int(i));
    output_buffers_.push_back(buffer);
    copies.push_back(
        {from, {.buffer = buffer, .shape = from.shape, .layout = Layout::row_major(from.shape.dims())}});
  }
  // A leaf that some output overwrites is set aside before the first of these copies.
  for (auto& [from, to] : copies) {
    const Plan::Buffer& b = plan_.buffers[size_t(from.buffer)];
    const bool donated =
        b.kind == BufferKind::leaf && std::any_of(interface_.donated.begin(), interface_.donated.end(),
                                                  [&](const Donation& d) { return d.leaf == b.index; });
    if (donated) from = add_copy(from, cat(b.name, " as it came"));
  }
  for (const auto& [from, to] : copies) append_copy(from, to);
}

void GraphAssembly::find_lifetimes() {
  for (Plan::Buffer& b : plan_.buffers) b.first = int(plan_.steps.size()), b.last = -1;
  const auto touch = [&](int buffer, int step) {
    Plan::Buffer& b = plan_.buffers[size_t(buffer)];
    b.first = std::min(b.first, step);
    b.last = std::max(b.last, step);
  };
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Plan::Step& step = plan_.steps[s];
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (!step.packed[i]) touch(step.in[i].buffer, int(s));
    }
    for (const Place& p : step.out) touch(p.buffer, int(s));
    if (step.workspace >= 0) touch(step.workspace, int(s));
  }
}

bool GraphAssembly::may_share(size_t s, const InPlace& pair) const {
  const Plan::Step& step = plan_.steps[s];
  const Place &x = step.in[size_t(pair.operand)], &y = step.out[size_t(pair.result)];
  if (x.shape != y.shape || x.offset != 0 || !x.layout.is_row_major(x.shape.dims())) return false;
  if (plan_.buffers[size_t(y.buffer)].bytes != y.shape.size_bytes())
    return false;  // part of something larger
  int reads = 0;
  for (size_t i = 0; i < step.in.size(); ++i) reads += step.in[i].buffer == x.buffer && !step.packed[i];
  return reads == 1;
}

// A state may be written in place when nobody reads the old one afterwards, and the step that writes it reads it only as
// an operand whose place it may take.
bool GraphAssembly::donation_is_safe(const Donation& d) const {
  const int out = output_buffers_[size_t(d.output)];
  const int written = plan_.buffers[size_t(out)].first;
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Plan::Step& step = plan_.steps[s];
    for (size_t i = 0; i < step.in.size(); ++i) {
      const Plan::Buffer& b = plan_.buffers[size_t(step.in[i].buffer)];
      if (b.kind != BufferKind::leaf || b.index != d.leaf || step.packed[i] || int(s) < written) continue;
      const auto& pairs = work_[s].step->in_place;
      const auto takes_place = [&](const InPlace& p) {
        return p.operand == int(i) && step.out[size_t(p.result)].buffer == out && may_share(s, p);
      };
      if (int(s) > written || std::none_of(pairs.begin(), pairs.end(), takes_place)) return false;
    }
  }
  return true;
}

void GraphAssembly::copy_unsafe_donations() {
  bool changed = false;
  for (const Donation& d : interface_.donated) {
    RLX_CHECK(d.leaf >= 0 && size_t(d.output) < output_buffers_.size(), "donation of leaf ", d.leaf,
              " to output ", d.output);
    if (donation_is_safe(d)) continue;
    const int old = output_buffers_[size_t(d.output)];
    Plan::Buffer& b = plan_.buffers[size_t(old)];
    const Shape shape = graph_.shape(graph_.outputs()[size_t(d.output)]);
    const std::string name = b.name;
    b.kind = BufferKind::activation;
    b.name += " before it is stored";
    const int buffer = new_buffer(BufferKind::output, name, shape.size_bytes(), d.output);
    output_buffers_[size_t(d.output)] = buffer;
    const Layout layout = Layout::row_major(shape.dims());
    append_copy({.buffer = old, .shape = shape, .layout = layout},
                {.buffer = buffer, .shape = shape, .layout = layout});
    changed = true;
  }
  if (changed) find_lifetimes();
}

// Results take the place of an operand that dies with the step. Chains collapse into one buffer: `home` follows them, and
// the steps are renamed once at the end.
void GraphAssembly::share_places() {
  std::vector<int> home(plan_.buffers.size());
  for (size_t i = 0; i < home.size(); ++i) home[i] = int(i);
  const auto find = [&](int b) {
    while (home[size_t(b)] != b) b = home[size_t(b)] = home[size_t(home[size_t(b)])];
    return b;
  };
  std::vector<bool> donated(plan_.buffers.size(), false);
  for (const Donation& d : interface_.donated) donated[size_t(output_buffers_[size_t(d.output)])] = true;
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Plan::Step& step = plan_.steps[s];
    std::vector<bool> settled(step.out.size(), false);  // results that have a place by now
    for (const InPlace& pair : work_[s].step->in_place) {
      const int y = find(step.out[size_t(pair.result)].buffer);
      // The memory of a donated one is still read as the old state.
      if (settled[size_t(pair.result)] || donated[size_t(y)]) continue;
      const int x = find(step.in[size_t(pair.operand)].buffer);
      Plan::Buffer &bx = plan_.buffers[size_t(x)], &by = plan_.buffers[size_t(y)];
      if (x == y || bx.kind != BufferKind::activation || bx.last != int(s) || bx.bytes != by.bytes) continue;
      if (!may_share(s, pair)) continue;
      bool read_twice = false;  // under another name of the same place
      for (size_t i = 0; i < step.in.size(); ++i)
        read_twice =
            read_twice || (int(i) != pair.operand && !step.packed[i] && find(step.in[i].buffer) == x);
      if (read_twice) continue;
      by.first = bx.first;
      home[size_t(x)] = y;
      bx.bytes = 0;
      bx.last = -1;
      settled[size_t(pair.result)] = true;
    }
  }
  const auto rename = [&](Place& p) {
    p.value = p.buffer;
    p.buffer = find(p.buffer);
  };
  for (Plan::Step& step : plan_.steps) {
    std::ranges::for_each(step.in, rename);
    std::ranges::for_each(step.out, rename);
  }
  for (const Donation& d : interface_.donated) {
    const auto leaf = std::ranges::find_if(plan_.buffers, [&](const Plan::Buffer& b) {
      return b.kind == BufferKind::leaf && b.index == d.leaf;
    });
    plan_.buffers[size_t(output_buffers_[size_t(d.output)])].state = int(leaf - plan_.buffers.begin());
  }
}

void GraphAssembly::place() {
  std::vector<passes::Lifetime> lifetimes;
  std::vector<size_t> which;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const Plan::Buffer& b = plan_.buffers[i];
    if ((b.kind != BufferKind::activation && b.kind != BufferKind::workspace) || b.last < 0) continue;
    lifetimes.push_back({b.bytes, b.first, b.last});
    which.push_back(i);
  }
  const passes::Placement placed = passes::place_buffers(lifetimes);
  for (size_t i = 0; i < which.size(); ++i) plan_.buffers[which[i]].offset = placed.offsets[i];
  plan_.arena_bytes = placed.bytes;
  plan_.live_bytes = placed.live_bytes;
}

std::shared_ptr<const Executable> Builder::build(const ir::Graph& graph, const Interface& interface) const {
  if (const auto symbols = graph.dynamic_symbols(); !symbols.empty())
    throw invalid("build: graph '", graph.name(), "' has symbolic sizes: ", join(symbols),
                  "; bind them first");
  std::optional<ir::Graph> grouped;
  if (const auto* const joins = dynamic_cast<const Grouping*>(backend_)) grouped = joins->grouped(graph);
  const auto make = [&] { return GraphAssembly(*this, grouped ? *grouped : graph, interface).run(); };
  const auto* const chooses = dynamic_cast<const Choosing*>(backend_);
  return chooses ? chooses->with_choices(make) : make();
}

}  // namespace rlx::backend
