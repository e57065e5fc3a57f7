// Assembly, first part: nodes become steps, views or constants.
#include <algorithm>

#include "rlx/backend/assembly.h"
#include "rlx/backend/work.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/cast.h"

namespace rlx::backend {

std::string label(const ir::Node& n) { return n.name.empty() ? cat("%", n.id) : n.name; }

int Assembly::new_buffer(BufferKind kind, std::string name, int64_t bytes, int index) {
  plan_.buffers.push_back({.kind = kind, .name = std::move(name), .bytes = bytes, .index = index});
  return int(plan_.buffers.size()) - 1;
}

Plan::Place Assembly::fresh(const Shape& shape, std::string name) {
  const int buffer = new_buffer(BufferKind::activation, std::move(name), shape.size_bytes());
  return {.buffer = buffer, .shape = shape, .layout = Layout::row_major(shape.dims())};
}

Arg Assembly::arg(const Place& p) const {
  Arg a{.shape = p.shape, .layout = p.layout};
  const Plan::Buffer& b = plan_.buffers[size_t(p.buffer)];
  if (b.kind == BufferKind::constant) {
    a.fixed = true;
    const Literal& value = out_->constants_[size_t(b.index)];
    if (p.offset == 0 && value.shape() == p.shape && a.is_row_major()) a.constant = &value;
  }
  if (b.kind == BufferKind::leaf)
    a.fixed = size_t(b.index) < interface_.fixed.size() && interface_.fixed[size_t(b.index)];
  return a;
}

void Assembly::add_node(const ir::Node& n) {
  if (n.is<ir::Constant>() || n.is<ir::Full>()) return add_constant(n);
  if (waits(n) || add_view(n) || add_concat(n)) return;
  if (!add_with_narrow_cache(n)) add_step(n);
}

// Keys and values of attention may be kept in fewer bits. A cast to f32 that nothing else reads waits until
// the kernels of attention have been asked for the operand as it was.
bool Assembly::waits(const ir::Node& n) const {
  if (!n.is<ops::Cast>() || n.shapes[0].dtype() != DType::f32 || n.uses.empty()) return false;
  const DType from = graph_.shape(n.inputs[0]).dtype();
  if (from != DType::f16 && from != DType::bf16) return false;
  for (const ir::Use& use : n.uses) {
    if (use.user == ir::kNoNode) return false;  // an output of the graph
    if (!graph_.node(use.user).is<ops::Attention>() || (use.operand != 1 && use.operand != 2)) return false;
  }
  return true;
}

bool Assembly::add_with_narrow_cache(const ir::Node& n) {
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
void Assembly::add_constant(const ir::Node& n) {
  const Shape& shape = n.shapes[0];
  Place p{.shape = shape, .layout = Layout::row_major(shape.dims())};
  if (n.is<ir::Constant>()) {
    out_->constants_.push_back(n.as<ir::Constant>().value);
  } else {
    out_->constants_.push_back(Literal::full(Shape::scalar(shape.dtype()), n.as<ir::Full>().value));
    p.layout.strides.assign(p.layout.strides.size(), 0);
  }
  const Literal& value = out_->constants_.back();
  if (const Memory& memory = builder_.backend().memory(); !memory.on_host()) {
    Block block(memory, value.bytes().size());
    memory.upload(block.get(), value.bytes().data(), value.bytes().size());
    out_->constant_blocks_.push_back(std::move(block));
  }
  p.buffer = new_buffer(BufferKind::constant, label(n), int64_t(value.bytes().size()),
                        int(out_->constants_.size()) - 1);
  places_[n.result()] = std::move(p);
}

bool Assembly::add_view(const ir::Node& n) {
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

void Assembly::refuse(const ir::Node& n, const Choice& choice) const {
  std::vector<std::string> reasons;
  for (const Declined& d : choice.declined) reasons.push_back(cat(d.kernel, ": ", d.reason));
  Error e = invalid("build: no kernel of ", builder_.backend().name(), " runs ", n.op->name, "; ",
                    reasons.empty() ? "none is known" : join(reasons, "; "));
  e.set_node(label(n));
  if (n.origin) e.set_origin(n.origin->text());
  throw e;
}

// Kernels are asked first on operands as they lie, then with a copy of one strided operand, then with copies
// of all of them; the last resort comes last.
void Assembly::add_step(const ir::Node& n) {
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
    in[i] = add_copy(in[i], cat(label(n), " operand ", i));
  }
  add_chosen(n, std::move(in), args, choice, std::move(declined));
}

void Assembly::add_chosen(const ir::Node& n, std::vector<Place> in, std::span<const Arg> args,
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
                  .name = label(n),
                  .op = std::string(n.op->name),
                  .kernel = std::string(choice.kernel->name),
                  .origin = n.origin ? n.origin->text() : std::string(),
                  .in = std::move(in),
                  .out = std::move(out),
                  .cost = work_of(n, types),
                  .declined = std::move(declined)};
  append(std::move(step),
         choice.kernel->prepare(
             {.node = n, .in = args, .out = results, .threads = builder_.threads(), .builder = &builder_}));
}

Plan::Place Assembly::add_copy(const Place& from, std::string_view name) {
  Place to = fresh(from.shape, std::string(name));
  append_copy(from, to);
  return to;
}

void Assembly::append_copy(const Place& from, const Place& to) {
  const double bytes = 2.0 * double(from.shape.size_bytes());
  append({.op = "copy", .kernel = "copy", .in = {from}, .out = {to}, .cost = {0, bytes}},
         builder_.backend().prepare_copy(arg(from), arg(to), builder_.threads()));
}

void Assembly::append(Plan::Step s, std::unique_ptr<Step> step) {
  RLX_CHECK(step != nullptr, s.kernel, " accepted ", s.op, " and prepared nothing");
  s.note = step->note;
  s.bodies = step->bodies();
  if (step->workspace > 0)
    s.workspace = new_buffer(BufferKind::workspace, cat("workspace of step ", plan_.steps.size()),
                             int64_t(step->workspace));
  std::vector<int> forms = keep_packings(s, *step);
  plan_.steps.push_back(std::move(s));
  work_.push_back({std::move(step), std::move(forms)});
}

// Forms of constants are made now, those of weights when the weights are known. Equal forms are shared.
std::vector<int> Assembly::keep_packings(Plan::Step& s, const Step& step) {
  s.packed.assign(s.in.size(), false);
  std::vector<int> forms;
  for (const Packing& p : step.packings) {
    const Place& x = s.in[size_t(p.operand)];
    const Plan::Buffer& b = plan_.buffers[size_t(x.buffer)];
    s.packed[size_t(p.operand)] = true;
    if (b.kind == BufferKind::constant) {
      const std::byte* data = out_->constant(b.index) + x.offset;
      out_->constant_forms_.push_back(p.make(Team(default_pool(), builder_.threads()), data));
      forms.push_back(-int(out_->constant_forms_.size()));
      continue;
    }
    RLX_CHECK(b.kind == BufferKind::leaf, s.kernel, " packs an operand that is not fixed");
    Executable::WeightForm form{b.index, p};
    form.packing.form = cat(p.form, " at ", x.offset);
    form.packing.make = [make = p.make, offset = x.offset](Team team, const std::byte* data) {
      return make(team, data + offset);
    };
    int at = -1;
    for (size_t i = 0; i < out_->weight_forms_.size(); ++i) {
      const auto& other = out_->weight_forms_[i];
      if (other.leaf == form.leaf && other.packing.form == form.packing.form) at = int(i);
    }
    if (at < 0) {
      at = int(out_->weight_forms_.size());
      out_->weight_forms_.push_back(std::move(form));
    }
    forms.push_back(at);
  }
  return forms;
}

}  // namespace rlx::backend
