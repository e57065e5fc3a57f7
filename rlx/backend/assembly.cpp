#include "rlx/backend/assembly.h"

#include <algorithm>
#include <atomic>

namespace rlx::backend {

Assembly::Assembly(const Backend& backend, int threads)
    : backend_(backend), threads_(threads), out_(std::make_shared<Executable>()), plan_(out_->plan_) {}

int Assembly::new_buffer(BufferKind kind, std::string name, int64_t bytes, int index) {
  plan_.buffers.push_back({.kind = kind, .name = std::move(name), .bytes = bytes, .index = index});
  return int(plan_.buffers.size()) - 1;
}

int Assembly::new_constant(std::string name, Literal value) {
  if (const Memory& memory = backend_.memory(); !memory.on_host()) {
    Block block(memory, value.bytes().size());
    memory.upload(block.get(), value.bytes().data(), value.bytes().size());
    out_->constant_blocks_.push_back(std::move(block));
  }
  const auto bytes = int64_t(value.bytes().size());
  out_->constants_.push_back(std::move(value));
  return new_buffer(BufferKind::constant, std::move(name), bytes, int(out_->constants_.size()) - 1);
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
    a.fixed = size_t(b.index) < fixed_leaves_.size() && fixed_leaves_[size_t(b.index)];
  return a;
}

void Assembly::append(Plan::Step s, std::unique_ptr<Step> step) {
  RLX_CHECK(step != nullptr, s.kernel, " accepted ", s.op, " and prepared nothing");
  s.note = step->note;
  s.bodies = step->bodies();
  s.in_place = step->in_place;
  s.by_rule = step->by_rule;
  s.sources = std::move(step->sources);
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
      out_->constant_forms_.push_back(p.make(Team(default_pool(), threads_), data));
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

void Assembly::bind_addresses(size_t leaves, size_t outputs) {
  size_t most = 0;
  const auto address = [&](const Place& p) {
    const Plan::Buffer& b = plan_.buffers[size_t(p.buffer)];
    const bool in_arena = b.kind == BufferKind::activation || b.kind == BufferKind::workspace;
    return Executable::Address{b.kind, b.index, p.offset + (in_arena ? b.offset : 0)};
  };
  out_->reads_leaf_.assign(leaves, false);
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Plan::Step& step = plan_.steps[s];
    Executable::Bound bound;
    bound.step = std::move(work_[s].step);
    bound.forms = std::move(work_[s].forms);
    out_->needs_host_ = out_->needs_host_ || bound.step->needs_host;
    for (size_t i = 0; i < step.in.size(); ++i) {
      bound.in.push_back(address(step.in[i]));
      if (bound.in.back().kind == BufferKind::leaf && !step.packed[i])
        out_->reads_leaf_[size_t(bound.in.back().index)] = true;
    }
    for (const Place& p : step.out) bound.out.push_back(address(p));
    if (step.workspace >= 0) bound.workspace = plan_.buffers[size_t(step.workspace)].offset;
    most = std::max(most, bound.in.size() + bound.out.size() + bound.forms.size());
    out_->steps_.push_back(std::move(bound));
  }
  out_->scratch_ = plan_.arena_bytes;
  out_->addresses_ = most;
  out_->outputs_ = outputs;
  static std::atomic<uint64_t> programs{0};
  out_->number_ = ++programs;
  out_->arena_bytes_ = size_t(plan_.arena_bytes) + most * sizeof(void*);
}

}  // namespace rlx::backend
