// Loops and branches. Bodies are programs of this device; a scan of known length only queues work, so that
// it can be recorded. Conditions are fetched, and the host decides.
#include <cstring>

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"

namespace rlx::cuda {
namespace {

using backend::aligned_size;

Support row_major(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

class GpuBody {
 public:
  GpuBody(const Request& r, const ir::Graph& body) : program_(r.builder->build(body)) {
    for (const ir::Value v : body.outputs()) outputs_.push_back(body.shape(v));
  }
  size_t workspace() const { return aligned_size(program_->arena_bytes()); }
  bool needs_host() const { return program_->needs_host(); }
  const backend::Plan& plan() const { return program_->plan(); }
  const Shape& output(size_t i) const { return outputs_[i]; }

  void run(const Launch& l, std::byte* workspace, std::byte* const* leaves, std::byte* const* outputs) const {
    std::vector<std::byte*> addresses(program_->addresses() + 1);
    program_->run({.team = l.team,
                   .leaves = leaves,
                   .outputs = outputs,
                   .arena = workspace,
                   .stream = l.stream,
                   .addresses = addresses.data()});
  }

 private:
  std::shared_ptr<const backend::Executable> program_;
  std::vector<Shape> outputs_;
};

void queue_copy(const Launch& l, std::byte* to, const std::byte* from, size_t bytes) {
  const Stream& s = stream_of(l);
  if (bytes > 0 && to != from)
    check(s.gpu.use().MemcpyDtoDAsync(device_pointer(to), device_pointer(from), bytes, s.handle), "a copy");
}

bool fetch_condition(const Launch& l, const Shape& type, const std::byte* at) {
  const Stream& s = stream_of(l);
  std::vector<std::byte> here(size_t(type.size_bytes()));
  if (!here.empty())
    check(s.gpu.use().MemcpyDtoHAsync(here.data(), device_pointer(at), here.size(), s.handle),
          "fetching a condition");
  check(s.gpu.use().StreamSynchronize(s.handle), "queued work");
  return backend::all_nonzero(type.dtype(), here.data(), type.elements());
}

// ---- scan ----

Support accepts_scan(const Request& r) {
  if (r.node.as<ops::Scan>().gate != ops::ScanGate::none) return Support::no("steps that may be left out");
  return row_major(r);
}

class ScanStep final : public Step {
 public:
  explicit ScanStep(const Request& r) : attrs_(r.node.as<ops::Scan>()), body_(r, *attrs_.body) {
    length_ = attrs_.length.value();
    carries_ = size_t(attrs_.carries);
    for (size_t i = 0; i < r.out.size(); ++i) {
      bytes_.push_back(size_t(body_.output(i).size_bytes()));
      if (i >= carries_) continue;
      spare_.push_back(spare_bytes_);
      spare_bytes_ += aligned_size(bytes_[i]);
    }
    fixed_ = carries_ + size_t(attrs_.consts);
    operands_ = r.in.size();
    for (size_t i = fixed_; i < operands_; ++i)
      slices_.push_back(length_ > 0 ? size_t(r.in[i].shape.size_bytes() / length_) : 0);
    workspace = spare_bytes_ + body_.workspace();
    needs_host = body_.needs_host();
    note = cat(length_, " steps");
  }

  std::vector<backend::Plan> bodies() const override { return {body_.plan()}; }

  // Carries alternate between the results and a second place, so that the last step writes where the
  // results belong.
  void run(const Launch& l) const override {
    std::vector<std::byte*> leaves(l.in, l.in + operands_), outputs(bytes_.size());
    bool to_results = length_ % 2 == 1;
    for (int64_t step = 0; step < length_; ++step, to_results = !to_results) {
      const int64_t t = attrs_.reverse ? length_ - 1 - step : step;
      for (size_t i = fixed_; i < operands_; ++i) leaves[i] = l.in[i] + size_t(t) * slices_[i - fixed_];
      for (size_t i = 0; i < carries_; ++i) outputs[i] = to_results ? l.out[i] : l.workspace + spare_[i];
      for (size_t i = carries_; i < bytes_.size(); ++i) outputs[i] = l.out[i] + size_t(t) * bytes_[i];
      body_.run(l, l.workspace + spare_bytes_, leaves.data(), outputs.data());
      for (size_t i = 0; i < carries_; ++i) leaves[i] = outputs[i];
    }
    for (size_t i = 0; i < carries_; ++i) queue_copy(l, l.out[i], leaves[i], bytes_[i]);
  }

 private:
  ops::Scan::Attrs attrs_;
  GpuBody body_;
  int64_t length_ = 0;
  size_t carries_ = 0, fixed_ = 0, operands_ = 0, spare_bytes_ = 0;
  std::vector<size_t> bytes_, spare_, slices_;  // of one output of the body; places of carries; of one slice
};

// ---- if ----

class IfStep final : public Step {
 public:
  explicit IfStep(const Request& r)
      : then_(r, *r.node.as<ops::If>().then_body),
        else_(r, *r.node.as<ops::If>().else_body),
        predicate_(r.in[0].shape) {
    workspace = std::max(then_.workspace(), else_.workspace());
    needs_host = true;
    note = "the host decides";
  }
  std::vector<backend::Plan> bodies() const override { return {then_.plan(), else_.plan()}; }
  void run(const Launch& l) const override {
    const GpuBody& taken = fetch_condition(l, predicate_, l.in[0]) ? then_ : else_;
    taken.run(l, l.workspace, l.in + 1, l.out);
  }

 private:
  GpuBody then_, else_;
  Shape predicate_;
};

// ---- while ----

class WhileStep final : public Step {
 public:
  explicit WhileStep(const Request& r)
      : attrs_(r.node.as<ops::While>()), condition_(r, *attrs_.cond), body_(r, *attrs_.body) {
    carries_ = size_t(attrs_.carries);
    operands_ = r.in.size();
    for (size_t i = 0; i < carries_; ++i) {
      bytes_.push_back(size_t(r.out[i].shape.size_bytes()));
      places_.push_back(place_bytes_);
      place_bytes_ += aligned_size(bytes_[i]);
    }
    flags_ = 2 * place_bytes_;
    inside_ = flags_ + aligned_size(size_t(condition_.output(0).size_bytes()));
    workspace = inside_ + std::max(condition_.workspace(), body_.workspace());
    needs_host = true;
    note = "the host decides";
  }
  std::vector<backend::Plan> bodies() const override { return {condition_.plan(), body_.plan()}; }
  void run(const Launch& l) const override {
    std::vector<std::byte*> leaves(l.in, l.in + operands_), outputs(carries_);
    std::byte* const flags = l.workspace + flags_;
    for (int64_t step = 0; !attrs_.max_iterations || step < *attrs_.max_iterations; ++step) {
      condition_.run(l, l.workspace + inside_, leaves.data(), &flags);
      if (!fetch_condition(l, condition_.output(0), flags)) break;
      std::byte* const to = l.workspace + size_t(step % 2) * place_bytes_;
      for (size_t i = 0; i < carries_; ++i) outputs[i] = to + places_[i];
      body_.run(l, l.workspace + inside_, leaves.data(), outputs.data());
      for (size_t i = 0; i < carries_; ++i) leaves[i] = outputs[i];
    }
    for (size_t i = 0; i < carries_; ++i) queue_copy(l, l.out[i], leaves[i], bytes_[i]);
  }

 private:
  ops::While::Attrs attrs_;
  GpuBody condition_, body_;
  size_t carries_ = 0, operands_ = 0, place_bytes_ = 0, flags_ = 0, inside_ = 0;
  std::vector<size_t> bytes_, places_;
};

template <class S>
std::unique_ptr<Step> prepare(const Request& r) {
  return std::make_unique<S>(r);
}

}  // namespace

void add_control(KernelTable& table) {
  table.add<ops::Scan>({"scan", accepts_scan, prepare<ScanStep>});
  table.add<ops::While>({"while", row_major, prepare<WhileStep>});
  table.add<ops::If>({"if", row_major, prepare<IfStep>});
}

}  // namespace rlx::cuda
