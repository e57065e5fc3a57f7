// GraphAssembly, first part: nodes become steps, views or constants.
#include <algorithm>

#include "rlx/backend/graph_assembly.h"
#include "rlx/backend/work.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/cast.h"

namespace rlx::backend {

Plan::Place GraphAssembly::fresh(const Shape& shape, std::string name) {
  const int buffer = new_buffer(BufferKind::activation, std::move(name), shape.size_bytes());
  return {.buffer = buffer, .shape = shape, .layout = Layout::row_major(shape.dims())};
}

void GraphAssembly::add_node(const ir::Node& n) {
  if (n.is<ir::Constant>() || n.is<ir::Full>()) return add_constant(n);
  if (waits(n) || add_view(n) || add_concat(n)) return;
  if (!add_with_narrow_cache(n)) add_step(n);
}

// Keys and values of attention may be kept in fewer bits. A cast to f32 that nothing else reads waits until
// the kernels of attention have been asked for the operand as it was.
bool GraphAssembly::waits(const ir::Node& n) const {
  if (!n.is<ops::Cast>() || n.shapes[0].dtype() != DType::f32 || n.uses.empty()) return false;
  const DType from = graph_.shape(n.inputs[0]).dtype();
  if (from != DType::f16 && from != DType::bf16) return false;
  for (const ir::Use& use : n.uses) {
    if (use.user == ir::kNoNode) return false;  // an output of the graph
    if (!graph_.node(use.user).is<ops::Attention>() || (use.operand != 1 && use.operand != 2)) return false;
  }
  return true;
}

bool GraphAssembly::add_with_narrow_cache(const ir::Node& n) {
  if (!n.is<ops::Attention>()) return false;
  std::vector<Place> in;
  std::vector<const ir::Node*> casts;
  for (const ir::Value v : n.inputs) {
    const ir::Node& from = graph_.node(v.node);
    const bool waiting = places_.find(v) == places_.end();
    if (waiting) casts.push_back(&from);
    in.push_back(places_.at(waiting ? from.inputs[0] : v));
  }
  if (casts.empty()) return false;
  std::vector<Arg> args, results;
  for (const Place& p : in) args.push_back(arg(p));
  for (const Shape& s : n.shapes) results.push_back({.shape = s, .layout = Layout::row_major(s.dims())});
  const Choice choice = builder_.backend().choose(
      {.node = n, .in = args, .out = results, .threads = builder_.threads(), .builder = &builder_}, false);
  if (choice.kernel) {
    add_chosen(n, std::move(in), args, choice, choice.declined);
    return true;
  }
  for (const ir::Node* cast : casts) {
    if (places_.find(cast->result()) == places_.end()) add_step(*cast);
  }
  return false;
}

// A fill is one element that every position reads.
void GraphAssembly::add_constant(const ir::Node& n) {
  const Shape& shape = n.shapes[0];
  Place p{.shape = shape, .layout = Layout::row_major(shape.dims())};
  if (n.is<ir::Constant>()) {
    p.buffer = new_constant(n.label(), n.as<ir::Constant>().value);
  } else {
    p.buffer = new_constant(n.label(), Literal::full(Shape::scalar(shape.dtype()), n.as<ir::Full>().value));
    p.layout.strides.assign(p.layout.strides.size(), 0);
  }
  places_[n.result()] = std::move(p);
}

bool GraphAssembly::add_view(const ir::Node& n) {
  if (n.op->view == nullptr || n.shapes.size() != 1) return false;
  const Place& x = places_.at(n.inputs[0]);
  const auto layout = n.op->view({x.shape, x.layout, n.shapes[0]}, n.attrs.get());
  if (!layout) return false;
  Place y{.buffer = x.buffer, .offset = x.offset, .shape = n.shapes[0], .layout = *layout};
  y.offset += y.layout.offset * int64_t(dtype_size(y.shape.dtype()));
  y.layout.offset = 0;
  places_[n.result()] = std::move(y);
  return true;
}

void GraphAssembly::refuse(const ir::Node& n, const Choice& choice) const {
  std::vector<std::string> reasons;
  for (const Declined& d : choice.declined) reasons.push_back(cat(d.kernel, ": ", d.reason));
  Error e = invalid("build: no kernel of ", builder_.backend().name(), " runs ", n.op->name, "; ",
                    reasons.empty() ? "none is known" : join(reasons, "; "));
  e.set_node(n.label());
  if (n.origin) e.set_origin(n.origin->text());
  throw e;
}

// Kernels are asked first on operands as they lie, then with a copy of one strided operand, then with copies
// of all of them; the last resort comes last.
void GraphAssembly::add_step(const ir::Node& n) {
  std::vector<Place> in;
  for (const ir::Value v : n.inputs) in.push_back(places_.at(v));
  std::vector<Arg> given, straight, results;
  for (const Place& p : in) {
    given.push_back(arg(p));
    straight.push_back(given.back());
    straight.back().layout = Layout::row_major(p.shape.dims());
    straight.back().constant = given.back().constant;
    if (!given.back().is_row_major()) straight.back().fixed = false;  // a copy that every run makes
  }
  for (const Shape& s : n.shapes) results.push_back({.shape = s, .layout = Layout::row_major(s.dims())});
  const Backend& backend = builder_.backend();
  std::vector<Arg> args = given;
  const auto ask = [&](bool last_resort) {
    return backend.choose(
        {.node = n, .in = args, .out = results, .threads = builder_.threads(), .builder = &builder_},
        last_resort);
  };
  Choice choice = ask(false);
  std::vector<Declined> declined = choice.declined;
  for (size_t i = 0; i < in.size() && !choice.kernel; ++i) {
    if (given[i].is_row_major()) continue;
    args = given;
    args[i] = straight[i];
    choice = ask(false);
  }
  if (!choice.kernel) {
    args = straight;
    choice = ask(true);
    for (const Declined& d : choice.declined) {
      bool known = false;
      for (const Declined& before : declined)
        known = known || (before.kernel == d.kernel && before.reason == d.reason);
      if (!known) declined.push_back(d);
    }
  }
  if (!choice.kernel) refuse(n, choice);
  for (size_t i = 0; i < in.size(); ++i) {
    if (args[i].layout == given[i].layout || given[i].is_row_major()) continue;
    in[i] = add_copy(in[i], cat(n.label(), " operand ", i));
  }
  add_chosen(n, std::move(in), args, choice, std::move(declined));
}

void GraphAssembly::add_chosen(const ir::Node& n, std::vector<Place> in, std::span<const Arg> args,
                               const Choice& choice, std::vector<Declined> declined) {
  std::vector<Place> out;
  std::vector<Arg> results;
  for (uint32_t i = 0; i < n.shapes.size(); ++i) {
    out.push_back(place_of_result(n, i));
    results.push_back({.shape = out[i].shape, .layout = out[i].layout});
    places_[n.result(i)] = out[i];
  }
  Shapes types;
  for (const Place& p : in) types.push_back(p.shape);
  Plan::Step step{.node = n.id,
                  .name = n.label(),
                  .op = std::string(n.op->name),
                  .kernel = std::string(choice.kernel->name),
                  .origin = n.origin ? n.origin->text() : std::string(),
                  .in = std::move(in),
                  .out = std::move(out),
                  .cost = work_of(n, types),
                  .declined = std::move(declined)};
  add(std::move(step),
      builder_.backend().prepare(
          *choice.kernel,
          {.node = n, .in = args, .out = results, .threads = builder_.threads(), .builder = &builder_}));
}

Plan::Place GraphAssembly::add_copy(const Place& from, std::string_view name) {
  Place to = fresh(from.shape, std::string(name));
  append_copy(from, to);
  return to;
}

void GraphAssembly::append_copy(const Place& from, const Place& to) {
  const double bytes = 2.0 * double(from.shape.size_bytes());
  add({.op = "copy", .kernel = "copy", .in = {from}, .out = {to}, .cost = {0, bytes}},
      builder_.backend().prepare_copy(arg(from), arg(to), builder_.threads()));
}

void GraphAssembly::add(Plan::Step s, std::unique_ptr<Step> step) {
  if (step != nullptr && step->workspace > 0)
    s.workspace = new_buffer(BufferKind::workspace, cat("workspace of step ", plan_.steps.size()),
                             int64_t(step->workspace));
  append(std::move(s), std::move(step));
}

}  // namespace rlx::backend
