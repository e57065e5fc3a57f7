// Loops and branches. Bodies are programs of this device; a scan of known length only queues work, so that
// it can be recorded. Where the driver records conditional nodes, a branch or loop is one of them; else, and in the first run, conditions
// are fetched and the host decides.
#include <algorithm>
#include <cstring>
#include <limits>

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/conditional.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/control/custom_fn.h"
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

  void run(const Launch& l, std::byte* workspace, std::byte* const* leaves, std::byte* const* outputs,
           const backend::BodyRun& which = {}) const {
    const backend::Look look(l.observer, which);
    std::vector<std::byte*> addresses(program_->addresses() + 1);
    program_->run({.team = l.team,
                   .leaves = leaves,
                   .outputs = outputs,
                   .arena = workspace,
                   .stream = l.stream,
                   .observer = look.observer(),
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

/// What loops of known length have in common.
class Loop : public Step {
 public:
  explicit Loop(const Request& r) : attrs_(r.node.as<ops::Scan>()), body_(r, *attrs_.body) {
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

 protected:
  int64_t slice_of(int64_t step) const { return attrs_.reverse ? length_ - 1 - step : step; }
  void set_slices(const Launch& l, int64_t t, std::byte** leaves) const {
    for (size_t i = fixed_; i < operands_; ++i) leaves[i] = l.in[i] + size_t(t) * slices_[i - fixed_];
  }
  /// Carries go to the results or beside them, other outputs to their slice.
  void set_outputs(const Launch& l, int64_t t, bool to_results, std::byte** outputs) const {
    for (size_t i = 0; i < carries_; ++i) outputs[i] = to_results ? l.out[i] : l.workspace + spare_[i];
    for (size_t i = carries_; i < bytes_.size(); ++i) outputs[i] = l.out[i] + size_t(t) * bytes_[i];
  }

  ops::Scan::Attrs attrs_;
  GpuBody body_;
  int64_t length_ = 0;
  size_t carries_ = 0, fixed_ = 0, operands_ = 0, spare_bytes_ = 0;
  std::vector<size_t> bytes_, spare_, slices_;  // of one output of the body; places of carries; of one slice
};

Support accepts_scan(const Request& r) {
  if (r.node.as<ops::Scan>().gate != ops::ScanGate::none) return Support::no("steps that may be left out");
  return row_major(r);
}

class ScanStep final : public Loop {
 public:
  using Loop::Loop;

  // Carries alternate between the results and a second place, so that the last step writes where the
  // results belong.
  void run(const Launch& l) const override {
    std::vector<std::byte*> leaves(l.in, l.in + operands_), outputs(bytes_.size());
    bool to_results = length_ % 2 == 1;
    for (int64_t step = 0; step < length_; ++step, to_results = !to_results) {
      const int64_t t = slice_of(step);
      set_slices(l, t, leaves.data());
      set_outputs(l, t, to_results, outputs.data());
      body_.run(l, l.workspace + spare_bytes_, leaves.data(), outputs.data(), {.round = step});
      for (size_t i = 0; i < carries_; ++i) leaves[i] = outputs[i];
    }
    for (size_t i = 0; i < carries_; ++i) queue_copy(l, l.out[i], leaves[i], bytes_[i]);
  }
};

// ---- conditions ----

// Whether all flags are not 0 and, of a loop, fewer than `most` steps were counted: into one word of the recorded graph, the contrary
// into another where there is one.
constexpr char kSetConditions[] = R"cuda(
extern "C" __device__ void cudaGraphSetConditional(u64 word, u32 value);
extern "C" __global__ void set_conditions(u64 yes, u64 no, int has_no, const Flag* flags, i64 count, i64* steps, i64 most) {
  bool all = true;
  for (i64 i = threadIdx.x; i < count; i += 32) all = all && as_f64(flags[i]) != 0.0;
  all = __all_sync(~0u, all);
  if (threadIdx.x != 0) return;
  if (steps != nullptr) all = all && (*steps)++ < most;
  cudaGraphSetConditional(yes, all);
  if (has_no) cudaGraphSetConditional(no, !all);
}
)cuda";

// Carries inside of a conditional node: nodes of copies there cost more than kernels.
constexpr char kCopyBytes[] = R"cuda(
extern "C" __global__ void copy_bytes(u8* to, const u8* from, i64 bytes) {
  const i64 whole = (reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from)) % 16 == 0 ? bytes / 16 : 0, step = i64(gridDim.x) * 256;
  const i64 first = i64(blockIdx.x) * 256 + threadIdx.x;
  for (i64 i = first; i < whole; i += step) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  for (i64 i = whole * 16 + first; i < bytes; i += step) to[i] = from[i];
}
)cuda";

class Condition {
 public:
  Condition(const Request& r, const Shape& flags) : device_(device_of(r)), count_(flags.elements()) {
    function_ = device_.functions().get(
        {"set_conditions", cat("typedef ", memory_type(flags.dtype()), " Flag;\n", kSetConditions)});
  }
  bool is_recorded() const { return device_.gpu() == nullptr || records_conditions(*device_.gpu()); }
  const char* note() const { return is_recorded() ? "a conditional node" : "the host decides"; }
  void set(const Stream& s, uint64_t yes, const uint64_t* no, const std::byte* flags,
           std::byte* steps = nullptr, int64_t most = 0) const {
    (*function_)(s.handle, {1}, {32}, 0, yes, no ? *no : uint64_t(0), int(no != nullptr), flags, count_,
                 steps, most);
  }

 private:
  const Device& device_;
  FunctionRef function_;
  int64_t count_;
};

/// Copies that conditional nodes hold.
class BytesCopy {
 public:
  explicit BytesCopy(const Device& device) : function_(device.functions().get({"copy_bytes", kCopyBytes})) {}
  void run(const Stream& s, std::byte* to, const std::byte* from, size_t bytes) const {
    constexpr int64_t kEach = 256 * 64, kMostBlocks = 1024;
    (*function_)(s.handle, {std::min((int64_t(bytes) + kEach - 1) / kEach, kMostBlocks)}, {256}, 0, to, from,
                 int64_t(bytes));
  }

 private:
  FunctionRef function_;
};

Launch on_stream(const Launch& l, Stream& s) {
  Launch out = l;
  out.stream = &s;
  return out;
}

// ---- scan, steps of which may be left out ----

Support accepts_gated(const Request& r) {
  if (r.node.as<ops::Scan>().gate == ops::ScanGate::none) return Support::no("every step runs");
  return row_major(r);
}

/// A flag, of the first carry or of a slice of the first sequence, lets a step run. Carries lie where the results belong, and a step writes
/// beside them: without it they stay, and its outputs are zeros.
class GatedScanStep final : public Loop {
 public:
  explicit GatedScanStep(const Request& r)
      : Loop(r), condition_(r, Shape(DType::bool_, {})), copy_(device_of(r)) {
    needs_host = needs_host || !condition_.is_recorded() || length_ > kMostRecorded;
    note += cat(" that may be left out, ", needs_host ? "the host decides" : condition_.note());
  }

  void run(const Launch& l) const override {
    Stream& s = stream_of(l);
    for (size_t i = 0; i < carries_; ++i) queue_copy(l, l.out[i], l.in[i], bytes_[i]);
    for (size_t i = carries_; i < bytes_.size(); ++i) {
      const size_t bytes = bytes_[i] * size_t(length_);
      if (bytes > 0) check(s.gpu.use().MemsetD8Async(device_pointer(l.out[i]), 0, bytes, s.handle), "a fill");
    }
    const bool recording = !needs_host && is_recording(s);
    for (int64_t step = 0; step < length_; ++step) {
      const int64_t t = slice_of(step);
      const bool by_carry = attrs_.gate == ops::ScanGate::carry;
      std::byte* const flag = by_carry ? l.out[0] : l.in[fixed_] + size_t(t) * slices_[0];
      if (recording) {
        const uint64_t word = new_condition(s);
        condition_.set(s, word, nullptr, flag);
        record_conditional(s, word, Repeat::once,
                           [&](Stream& inside) { run_step(on_stream(l, inside), step); });
      } else if (fetch_condition(l, Shape(DType::bool_, {}), flag)) {
        run_step(l, step);
      } else if (by_carry) {
        break;
      }
    }
  }

 private:
  void run_step(const Launch& l, int64_t step) const {
    const int64_t t = slice_of(step);
    std::vector<std::byte*> leaves(l.in, l.in + operands_), outputs(bytes_.size());
    for (size_t i = 0; i < carries_; ++i) leaves[i] = l.out[i];
    set_slices(l, t, leaves.data());
    set_outputs(l, t, false, outputs.data());
    body_.run(l, l.workspace + spare_bytes_, leaves.data(), outputs.data(), {.round = step});
    for (size_t i = 0; i < carries_; ++i) copy_.run(stream_of(l), l.out[i], outputs[i], bytes_[i]);
  }

  // Every step is a node with a body of its own; a loop that may be far longer than what it runs is not worth them.
  static constexpr int64_t kMostRecorded = 512;

  Condition condition_;
  BytesCopy copy_;
};

// ---- a function given as a graph ----

class CallStep final : public Step {
 public:
  explicit CallStep(const Request& r) : body_(r, *r.node.as<ops::CustomFn>().fwd_body) {
    workspace = body_.workspace();
    needs_host = body_.needs_host();
  }
  std::vector<backend::Plan> bodies() const override { return {body_.plan()}; }
  void run(const Launch& l) const override { body_.run(l, l.workspace, l.in, l.out); }

 private:
  GpuBody body_;
};

// ---- if ----

class IfStep final : public Step {
 public:
  explicit IfStep(const Request& r)
      : then_(r, *r.node.as<ops::If>().then_body),
        else_(r, *r.node.as<ops::If>().else_body),
        predicate_(r.in[0].shape),
        condition_(r, predicate_) {
    workspace = std::max(then_.workspace(), else_.workspace());
    needs_host = !condition_.is_recorded() || then_.needs_host() || else_.needs_host();
    note = needs_host ? "the host decides" : condition_.note();
  }
  std::vector<backend::Plan> bodies() const override { return {then_.plan(), else_.plan()}; }
  void run(const Launch& l) const override {
    if (!needs_host && is_recording(stream_of(l))) return record(l);
    const bool holds = fetch_condition(l, predicate_, l.in[0]);
    (holds ? then_ : else_).run(l, l.workspace, l.in + 1, l.out, {.body = holds ? 0 : 1});
  }

 private:
  void record(const Launch& l) const {
    const Stream& s = stream_of(l);
    const uint64_t yes = new_condition(s), no = new_condition(s);
    condition_.set(s, yes, &no, l.in[0]);
    for (const auto& [word, body] : {std::pair(yes, &then_), std::pair(no, &else_)}) {
      record_conditional(s, word, Repeat::once, [&, body = body](Stream& inside) {
        body->run(on_stream(l, inside), l.workspace, l.in + 1, l.out);
      });
    }
  }

  GpuBody then_, else_;
  Shape predicate_;
  Condition condition_;
};

// ---- while ----

class WhileStep final : public Step {
 public:
  explicit WhileStep(const Request& r)
      : attrs_(r.node.as<ops::While>()),
        test_(r, *attrs_.cond),
        body_(r, *attrs_.body),
        condition_(r, test_.output(0)),
        copy_(device_of(r)) {
    carries_ = size_t(attrs_.carries);
    operands_ = r.in.size();
    for (size_t i = 0; i < carries_; ++i) {
      bytes_.push_back(size_t(r.out[i].shape.size_bytes()));
      places_.push_back(place_bytes_);
      place_bytes_ += aligned_size(bytes_[i]);
    }
    steps_ = 2 * place_bytes_;
    flags_ = steps_ + aligned_size(sizeof(int64_t));
    inside_ = flags_ + aligned_size(size_t(test_.output(0).size_bytes()));
    workspace = inside_ + std::max(test_.workspace(), body_.workspace());
    needs_host = !condition_.is_recorded() || test_.needs_host() || body_.needs_host();
    note = needs_host ? "the host decides" : condition_.note();
  }
  std::vector<backend::Plan> bodies() const override { return {test_.plan(), body_.plan()}; }
  void run(const Launch& l) const override {
    if (!needs_host && is_recording(stream_of(l))) return record(l);
    std::vector<std::byte*> leaves(l.in, l.in + operands_), outputs(carries_);
    std::byte* const flags = l.workspace + flags_;
    for (int64_t step = 0; !attrs_.max_iterations || step < *attrs_.max_iterations; ++step) {
      test_.run(l, l.workspace + inside_, leaves.data(), &flags, {.round = step});
      if (!fetch_condition(l, test_.output(0), flags)) break;
      std::byte* const to = l.workspace + size_t(step % 2) * place_bytes_;
      for (size_t i = 0; i < carries_; ++i) outputs[i] = to + places_[i];
      body_.run(l, l.workspace + inside_, leaves.data(), outputs.data(), {.body = 1, .round = step});
      for (size_t i = 0; i < carries_; ++i) leaves[i] = outputs[i];
    }
    for (size_t i = 0; i < carries_; ++i) queue_copy(l, l.out[i], leaves[i], bytes_[i]);
  }

 private:
  // Every step has the same addresses: carries lie where the results belong, and a step writes beside them.
  void record(const Launch& l) const {
    const Stream& s = stream_of(l);
    const uint64_t go_on = new_condition(s);
    std::byte *const flags = l.workspace + flags_, *const steps = l.workspace + steps_;
    std::vector<std::byte*> leaves(l.in, l.in + operands_), outputs(carries_);
    for (size_t i = 0; i < carries_; ++i) {
      queue_copy(l, l.out[i], l.in[i], bytes_[i]);
      leaves[i] = l.out[i], outputs[i] = l.workspace + places_[i];
    }
    check(s.gpu.use().MemsetD8Async(device_pointer(steps), 0, sizeof(int64_t), s.handle), "a fill");
    const auto decide = [&](const Launch& at) {
      test_.run(at, l.workspace + inside_, leaves.data(), &flags);
      condition_.set(stream_of(at), go_on, nullptr, flags, steps,
                     attrs_.max_iterations.value_or(std::numeric_limits<int64_t>::max()));
    };
    decide(l);
    record_conditional(s, go_on, Repeat::as_long_as_it_holds, [&](Stream& inside) {
      const Launch at = on_stream(l, inside);
      body_.run(at, l.workspace + inside_, leaves.data(), outputs.data());
      for (size_t i = 0; i < carries_; ++i) copy_.run(inside, l.out[i], outputs[i], bytes_[i]);
      decide(at);
    });
  }

  ops::While::Attrs attrs_;
  GpuBody test_, body_;
  Condition condition_;
  BytesCopy copy_;
  size_t carries_ = 0, operands_ = 0, place_bytes_ = 0, steps_ = 0, flags_ = 0, inside_ = 0;
  std::vector<size_t> bytes_, places_;
};

template <class S>
std::unique_ptr<Step> prepare(const Request& r) {
  return std::make_unique<S>(r);
}

}  // namespace

void add_control(KernelTable& table) {
  table.add<ops::Scan>({"scan", accepts_scan, prepare<ScanStep>});
  table.add<ops::Scan>({"scan_gated", accepts_gated, prepare<GatedScanStep>});
  table.add<ops::CustomFn>({"custom_fn", row_major, prepare<CallStep>});
  table.add<ops::While>({"while", row_major, prepare<WhileStep>});
  table.add<ops::If>({"if", row_major, prepare<IfStep>});
}

}  // namespace rlx::cuda
